"""A job whose worker is lost in the midst of a training goes on from the checkpoint: its artefact has the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from audits.training.keeper import NEVER, Snapshot
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.store.checkpoints import JobKeeper
from orchestrator.engine.store.store import Store
from orchestrator.kinds import open_design
from tests.cases.lost import Lost
from tests.cases.runs import audited, context_of, jobs_of
from tests.cases.smallest_plans import smallest_plan

LONGER = {"unlearning.1.epochs": 3, "recipe.epochs": 3}
EARLIER = 1000.0
"""Seconds that a lost worker is said to have worked."""
CASES = [
    ("apollo", "train", ""),
    ("apollo", "unlearn", ""),
    ("apollo", "own_start", ""),
    pytest.param("apollo", "disclosure", "", marks=pytest.mark.long),
    pytest.param("apollo, exposed points", "expose", "", marks=pytest.mark.long),
    pytest.param("tmia", "train", "", marks=pytest.mark.long),
    ("gnq", "train", ""),
    pytest.param("gnq", "defend", "noise", marks=pytest.mark.long),
    ("gnq", "defend", "dp"),
    pytest.param("gnq, looks apart", "train", "", marks=pytest.mark.long),
    ("mia", "train", ""),
]


def with_its_inputs(jobs: tuple[Job, ...], last: Job) -> list[Job]:
    """Return the jobs that ``last`` rests on, in their order, and itself."""
    wanted = {last.key}
    for job in reversed(jobs):
        wanted |= set(job.needs) if job.key in wanted else set()
    return [job for job in jobs if job.key in wanted]


def made(store: Store, job: Job) -> dict[str, str]:
    """Return the checksums of the job's files."""
    return {name: entry.sha256 for name, entry in store.get(job.stage, job.key).files.items()}


@pytest.mark.parametrize(("name", "stage", "label"), CASES)
def test_a_lost_job_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, stage: str, label: str) -> None:
    store = Store(str(tmp_path / "store"))
    plan = smallest_plan(name, tmp_path / "store", **(LONGER if name.startswith("apollo") else {}))
    design = open_design(plan, store)
    jobs = tuple(design.first_jobs() or design.jobs())
    last = next(job for job in jobs if job.stage == stage and label in job.label)
    steps = count_steps(monkeypatch)
    for job in with_its_inputs(jobs, last):
        steps.clear()
        context_of(plan, store).perform(job)
    whole, undisturbed = made(store, last), len(steps)
    assert undisturbed > 1
    store.drop(last.stage, last.key)
    with monkeypatch.context() as patch:
        lost_at(patch, undisturbed - 1)
        with pytest.raises(Lost):
            context_of(plan, store).perform(last)
    assert list(store.storage.walk("checkpoints"))
    assert not store.has(last.stage, last.key)
    steps.clear()
    context_of(plan, store).perform(last)
    assert made(store, last) == whole
    assert len(steps) == 1
    assert store.get(last.stage, last.key).seconds > EARLIER, "the lost worker's time counts"
    assert not list(store.storage.walk("checkpoints"))


def count_steps(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """Return a list that grows by each step of a training."""
    steps: list[None] = []
    monkeypatch.setattr(JobKeeper, "due", lambda self: steps.append(None))
    return steps


def lost_at(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Let a checkpoint be due behind ``step`` steps, and the worker be lost when it is written."""
    taken: list[int] = []
    save = JobKeeper.save

    def due(self: JobKeeper) -> bool:
        taken.append(0)
        return len(taken) == step

    def saved(self: JobKeeper, snapshot: Snapshot) -> None:
        self.begun -= EARLIER
        save(self, snapshot)
        raise Lost

    monkeypatch.setattr(JobKeeper, "due", due)
    monkeypatch.setattr(JobKeeper, "save", saved)


def keys(**compute: Any) -> list[str]:
    changes = {f"compute.{name}": value for name, value in compute.items()}
    return [job.key for job in jobs_of(smallest_plan("mia", Path("/nowhere"), **changes))]


def test_how_often_a_training_is_kept_is_in_no_key() -> None:
    assert keys() == keys(checkpoint_minutes=None) == keys(checkpoint_minutes=1.5)


@pytest.mark.parametrize("minutes", [0, None])
def test_a_plan_may_want_no_checkpoints(tmp_path: Path, minutes: float | None) -> None:
    store = Store(str(tmp_path / "store"))
    plan = smallest_plan("mia", tmp_path / "store", **{"compute.checkpoint_minutes": minutes})
    context = context_of(plan, store)
    context.perform(jobs_of(plan, "train", store=store)[0])
    assert context.keeper is NEVER


@pytest.mark.long
def test_a_run_says_how_many_models_go_on_from_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = smallest_plan("mia", tmp_path / "store", **{"audit.attacks": ["loss"]})
    with monkeypatch.context() as patch:
        lost_at(patch, 1)
        with pytest.raises(Lost):
            audited(plan, tmp_path / "out")
    assert "checkpoints:" not in capsys.readouterr().out
    audited(plan, tmp_path / "out")
    assert "checkpoints: 1 of the models goes on from there\n" in capsys.readouterr().out
    audited(plan, tmp_path / "out")
    assert "checkpoints:" not in capsys.readouterr().out
