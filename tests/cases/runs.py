"""Whole runs, laid-out plans and contexts for tests; runs draw no page and log nothing unless they are asked to."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from ray import cloudpickle

from actors.jobs import MakePerform, Workers
from orchestrator.engine.jobs.job import Job, of_stage
from orchestrator.engine.kind import Tuning
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import claim_folder
from orchestrator.engine.run.run import Result, Run
from orchestrator.engine.run.standing import Left
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named, open_design
from orchestrator.report import writing
from tests.cases.undrawn import DRAWING
from tune_spaces.registry import Sweep

WHOLE: dict[str, Callable[..., Any]] = {}
"""What draws figures in each module, where a test has put something else in its place."""


class UnshownRun(Run):
    """A run that leaves plan, result and scores; page and tracking, which take longest, are left out."""

    def report(self, document: Mapping[str, Any]) -> None:
        """Draw nothing."""

    def watch(self, settings: Sequence[Setting], left: Left, what: str = "", tuning: Tuning | None = None) -> None:
        """Show and log nothing while the run goes on."""

    def track(self, document: dict[str, Any]) -> None:
        """Log nothing."""


def audited(plan: BasePlan, out: Path, *, shown: bool = False, rebuild: bool = False) -> Result:
    """Carry out the audit of ``plan``; ``shown``: with its page and its tracking."""
    return begun(plan, out, f"{plan.kind}-audit", shown=shown, rebuild=rebuild).audit()


def swept(sweep: Sweep, plan: BasePlan, out: Path, *, shown: bool = False) -> Result:
    """Carry out ``sweep`` around ``plan``; ``shown``: with its page and its tracking."""
    return begun(plan, out, sweep.name, shown=shown).sweep(sweep)


def begun(plan: BasePlan, out: Path, name: str, *, shown: bool = False, rebuild: bool = False) -> Run:
    """Return a run of ``plan`` that leaves its files in ``out``, whatever is there."""
    terminal = Terminal(claim_folder(out, plan, force=True))
    return (Run if shown else UnshownRun)(kind_named(plan.kind), plan, out, terminal, name=name, rebuild=rebuild)


def draw_only(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Let pages hold those of their figures alone whose names begin with one of ``names``: drawing takes longest."""
    draw = writing.draw
    for module in DRAWING:
        WHOLE.setdefault(module, importlib.import_module(module).draw)  # noqa: TID251  # two import Matplotlib

    def few(makers: writing.Makers, folder: Path) -> dict[str, str]:
        return draw({name: make for name, make in makers.items() if name.startswith(names)}, folder)

    for module in DRAWING:
        patch.setattr(f"{module}.draw", few)


@contextmanager
def all_drawn() -> Iterator[None]:
    """Let pages hold all of their figures meanwhile, whatever the test that runs wants."""
    with pytest.MonkeyPatch.context() as patch:
        for module, draw in WHOLE.items():
            patch.setattr(f"{module}.draw", draw)
        yield


def jobs_of(plan: BasePlan, *stages: str, store: Store | None = None) -> tuple[Job, ...]:
    """Return the jobs of ``plan``, of one of ``stages`` if any are named; first jobs are not among them."""
    jobs = open_design(plan, store).jobs()
    return of_stage(jobs, *stages) if stages else tuple(jobs)


def numbers_compared(plan: BasePlan) -> set[str]:
    """Return the names by which a finished run of ``plan`` can be compared with others, each known beforehand."""
    kind, found = kind_named(plan.kind), set[str]()
    store = Store(str(plan.compute.store))
    for name, changes in plan.settings().items():
        changed = plan.changed(changes)
        setting = Setting(name, changes, changed, jobs_of(changed, store=store))
        numbers = kind.comparison(setting, store)
        assert numbers and numbers.keys() <= set(kind.compared(changed))
        found |= numbers.keys()
    return found


def context_of(plan: BasePlan, store: Store) -> WorkerContext[Any]:
    """Return the context in which a worker does the jobs of ``plan``."""
    return WorkerContext(kind_named(plan.kind), open_design(plan, store), store)


def two_in_turn(jobs: Sequence[Job], make_perform: MakePerform, workers: Workers, **_: Any) -> None:
    """Do jobs as two workers do, each from a pickle and with a memory of its own, the last that are ready first."""
    assert workers.count == 2
    performs = [cloudpickle.loads(cloudpickle.dumps(make_perform))() for _ in range(2)]
    left = {job.key: job for job in jobs}
    while left:
        ready = [job for job in left.values() if not left.keys() & set(job.needs)]
        assert ready
        for number, job in enumerate(reversed(ready)):
            performs[number % 2](job)
            del left[job.key]


def take_turns(monkeypatch: pytest.MonkeyPatch, how: Callable[..., None] = two_in_turn) -> None:
    """Let runs in this process do jobs as two workers do, or as ``how`` does, without Ray."""
    monkeypatch.setattr("orchestrator.engine.run.crew.connect", lambda *_: nullcontext())
    monkeypatch.setattr("orchestrator.engine.run.crew.do_jobs", how)
