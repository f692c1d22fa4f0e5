"""Bodies of stages at work: every function of ours that one calls stands in a module that its key counts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from cProfile import Profile
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from audits.registry import Registry
from orchestrator.engine import keyed_jobs
from orchestrator.engine.data import data_of
from orchestrator.engine.jobs.code_version import OURS, code_version, counts, reached
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.choice import rehearsing, selection_of
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.engine.store.store import Store
from orchestrator.kinds import KINDS, kind_named
from tests.cases.runs import context_of
from tests.cases.smallest_plans import GIVEN, SMALLEST, smallest_plan

SHORT = ("gnq-target",)
"""Kinds whose bodies are at work here; the others in the long run."""
ROOT = Path(keyed_jobs.__file__).parents[2]
MAKE_KEYS = (
    "orchestrator.apollo.jobs",
    "orchestrator.apollo.ranking_jobs",
    "orchestrator.apollo.rehearsal_jobs",
    "orchestrator.apollo.stage_jobs",
    "orchestrator.engine.given",
    "orchestrator.engine.given_files",
    "orchestrator.engine.jobs",
    "orchestrator.engine.keyed_jobs",
    "orchestrator.engine.rehearsal",
    "orchestrator.gnq.given.jobs",
    "orchestrator.gnq.jobs",
    "orchestrator.mia.jobs",
    "orchestrator.tmia.jobs",
    "orchestrator.tmia.rehearsal",
)
"""Modules whose part in a body is to name artefacts: their keys stand in the job's document."""


@contextmanager
def recorded() -> Iterator[set[CodeType]]:
    """Collect the code of every Python function that is called meanwhile; it is there at the end."""
    found: set[CodeType] = set()
    profile = Profile(subcalls=False, builtins=False)  # written in C: a trace function takes twice the time
    with profile:
        yield found
    found.update(entry.code for entry in profile.getstats() if isinstance(entry.code, CodeType))


def ours(code: CodeType) -> str:
    """Return the name of the module of ours in which a function stands, "" for other people's."""
    file = Path(code.co_filename)
    if not file.is_relative_to(ROOT) or file.relative_to(ROOT).parts[0] not in OURS:
        return ""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def load_all_tables() -> None:
    """Import every component, so that no body is blamed for what runs when modules are imported."""
    modules = [module for name, module in sys.modules.items() if name.startswith("audits.")]
    for table in [value for module in modules for value in vars(module).values() if isinstance(value, Registry)]:
        len(table)


def carried_out(context: WorkerContext[Any], jobs: tuple[Job, ...]) -> Iterator[tuple[Job, set[str]]]:
    """Do ``jobs``; yield each with the modules of ours of which it called functions."""
    for job in jobs:
        body = context.kind.stage(job.stage).body
        with recorded() as found:
            files = body(context, job)
        context.store.put(job.stage, job.key, job.document, files)
        called = {module for module in map(ours, found) if module}
        assert body.__module__ in called, "nothing was recorded"
        yield job, called


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.long] * (kind not in SHORT)) for kind in KINDS])
def test_bodies_call_nothing_that_their_keys_do_not_count(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named: dict[str, tuple[str, ...]] = {}

    def noted(modules: tuple[str, ...]) -> str:
        version = code_version(modules)
        named[version] = modules
        return version

    monkeypatch.setattr(keyed_jobs, "code_version", noted)
    load_all_tables()
    done: set[str] = set()
    bring: dict[str, set[str]] = {}  # key of a given model → modules that it counts, as does who asks it
    plans = {name: smallest_plan(name, tmp_path / "store") for name in SMALLEST | GIVEN}  # work of equal keys once
    for name, plan in plans.items():
        if plan.kind != kind:
            continue
        store = Store(str(tmp_path / "store"))
        first = context_of(plan, store)
        work = [*carried_out(first, first.design.first_jobs())]
        then = context_of(plan, store)
        present = kind_named(plan.kind).present(store)
        work += carried_out(then, tuple(job for job in then.design.jobs() if job.key not in present[job.stage]))
        if name == plan.kind:
            work += rehearsals(plan.changed({"split.shadows": 8} if name == "apollo" else {}), store)
        for job, called in work:
            counted = set(reached(named[job.document["code"]]))
            if job.stage == "given":
                bring[job.key] = counted
            missed = called - counted.union(*(bring.get(need, ()) for need in job.needs))
            assert not {module for module in missed if counts(module) and not within(module, MAKE_KEYS)}, job
            done.add(job.stage)
    assert done == {stage.name for stage in kind_named(kind).stages}


METRICS = {
    "apollo": ("identity.apollo.auc", "identity.rmia.auc"),
    "tmia": ("selected.tmia_distance.auc",),
    "mia": ("lira.auc",),
    "gnq": ("defended.lira.adaptive.auc",),
}
"""By what settings are chosen of which the rehearsal is done here."""


def rehearsals(plan: BasePlan, store: Store) -> Iterator[tuple[Job, set[str]]]:
    """Do what is missing of the jobs by which settings are chosen; yield as ``carried_out`` does."""
    kind = kind_named(plan.kind)
    selection, by = selection_of(kind), rehearsing(kind)
    for metric in METRICS[plan.kind]:
        data = data_of(plan.data.name, plan.data.root, plan.data.groups)
        design = by.lay_out(selection.rehearsed(plan, metric), data, "cpu", store)
        jobs = selection.jobs(design, metric)
        missing = tuple(job for job in jobs if not store.has(job.stage, job.key))
        yield from carried_out(WorkerContext(by, design, store), missing)


def within(module: str, places: tuple[str, ...]) -> bool:
    """Say whether a module is one of ``places`` or lies in one of them."""
    return any(module == place or module.startswith(f"{place}.") for place in places)
