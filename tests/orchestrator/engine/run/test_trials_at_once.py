"""Trials of a search side by side: a model that two need at the same moment is made once, and the table is the same."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from actors.jobs import Workers
from actors.searches import Steering
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.crew import Crew
from orchestrator.engine.run.part_trial import PartTrial
from orchestrator.engine.run.recent import Recent
from orchestrator.engine.run.suggesting import Trial, suggest
from orchestrator.engine.run.trusted import TrustedContexts
from orchestrator.engine.run.worker import WorkerContext
from orchestrator.kinds import KINDS, kind_named, load_plan
from tests.cases.runs import begun, jobs_of
from tune_spaces.registry import Sweep
from tune_spaces.space import Dimension, Search, Space

ORDERS = (["loss"], ["loss", "right"], ["right", "loss"])
SPACE = Space((Dimension("recipe.epochs", "choice", (1, 2)), Dimension("audit.attacks", "choice", ORDERS)))
SEARCH = Search(SPACE, "optuna", 4, None, ("loss.auc",), ("max",), at_a_time=2, seed=3)
ONE_AT_A_TIME = threading.Lock()


@pytest.fixture(scope="module", autouse=True)
def registered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, "toy", "tests.orchestrator.toy.kind:KIND")
        yield


class Noted(WorkerContext[Any]):
    """Leaves a line for each job that it does; threads of one process take turns, as torch's generator is theirs."""

    def perform(self, job: Job) -> None:
        with ONE_AT_A_TIME:
            super().perform(job)
            with Path(self.store.uri).with_name("done").open("a") as notes:
                notes.write(f"{job.stage}/{job.key}\n")


@dataclass(frozen=True)
class Meeting(TrustedContexts):
    """Does none of the jobs ``together`` before two trials have found it missing and have come to do it."""

    together: frozenset[str] = frozenset()

    def open(self, plan_hash: str, lately: Recent | None = None) -> WorkerContext[Any]:
        found = super().open(plan_hash, lately)
        return Noted(found.kind, found.design, found.store)

    def do(self, context: WorkerContext[Any], job: Job) -> None:
        if job.key in self.together:
            folder = Path(self.store).with_name("met")
            folder.mkdir(exist_ok=True)
            (folder / f"{job.key}.{os.getpid()}.{threading.get_ident()}").touch()
            end = time.monotonic() + 120
            while len(list(folder.glob(f"{job.key}.*"))) < 2:
                assert time.monotonic() < end, "only one trial came to do it"
        super().do(context, job)


def in_two_threads(steering: Steering, trial: PartTrial, workers: Workers, at_a_time: int, *, name: str) -> None:
    """Run trials as ``run_search`` does, two at a time, each with a claim of its own."""
    steered = threading.Lock()

    def serve() -> None:
        while True:
            with steered:
                config = steering.ask()
            if config is None:
                return
            for report in replace(trial, alone=False)(config):
                with steered:
                    if steering.hear(config["number"], report):
                        break

    with ThreadPoolExecutor(2) as pool:
        for served in [pool.submit(serve) for _ in range(2)]:
            served.result()


def toy(place: Path, workers: int) -> BasePlan:
    values = {"compute.workers": workers, "compute.store": str(place / "store")}
    return load_plan(kind_named("toy").default_plan, values=values)


def drawn() -> list[dict[str, Any]]:
    """Return what the trials change; before the tenth has ended no suggestion depends on their values."""
    found: list[dict[str, Any]] = []
    for _ in range(4):
        found.append(suggest(SEARCH, [Trial(at, each, {}, state="failed") for at, each in enumerate(found)])[0])
    return found


def searched(place: Path, workers: int = 0) -> dict[str, Any]:
    sweep = Sweep("at-once", "Epochs and attacks.", "", lambda plan: {}, "loss.auc", "a table", search=SEARCH)
    return begun(toy(place, workers), place / "out", sweep.name).sweep(sweep).document


def told(document: dict[str, Any]) -> Any:
    """Return the table of a search, its settings and the value of each."""
    values = {row["setting"]: row["values"] for row in document["search"]["trials"]}
    return document["table"], document["settings"], values


def meet(patch: pytest.MonkeyPatch, place: Path) -> None:
    """Let the first two trials, which need the same models, come to each of them at the same moment."""
    first, second = drawn()[:2]
    assert first["recipe.epochs"] == second["recipe.epochs"] and first["audit.attacks"] != second["audit.attacks"]
    models = jobs_of(toy(place, 0).changed(first), "train")
    own = Crew.contexts

    def contexts(self: Crew, plans: Any) -> Meeting:
        return Meeting(**vars(own(self, plans)), together=frozenset(job.key for job in models))

    patch.setattr(Crew, "contexts", contexts)


@pytest.mark.long
def test_two_trials_that_need_the_same_model_at_the_same_moment_make_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In short: ``test_store_use.py``, of two runs at once."""
    one, both = tmp_path / "one", tmp_path / "both"
    alone = searched(one)
    meet(monkeypatch, both)
    monkeypatch.setattr("orchestrator.engine.run.searching.run_search", in_two_threads)
    monkeypatch.setattr("orchestrator.engine.run.trial.ELSEWHERE_SECONDS", 0.01)
    assert told(searched(both)) == told(alone)
    check_notes(both)


@pytest.mark.cluster
@pytest.mark.long
def test_two_workers_that_need_the_same_model_at_the_same_moment_make_it_once(
    tmp_path: Path, cluster: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, both = tmp_path / "one", tmp_path / "both"
    alone = searched(one)
    meet(monkeypatch, both)
    assert told(searched(both, 2)) == told(alone)
    check_notes(both)
    assert len({file.name.split(".")[1] for file in (both / "met").iterdir()}) == 2  # processes


def check_notes(place: Path) -> None:
    """Assert that every job was done once, that trials have met, and that nobody holds a claim any more."""
    done = Counter((place / "done").read_text().splitlines())
    assert set(done.values()) == {1}
    models = {each["recipe.epochs"] for each in drawn()}
    assert sum(name.startswith("train/") for name in done) == 3 * len(models)
    met = Counter(file.name.split(".")[0] for file in (place / "met").iterdir())
    assert sorted(met.values()) == [2, 2, 2]
    assert not any((place / "store" / "claims").glob("*"))
