"""A command, or one of its workers, killed in the midst of a training loses at most what its checkpoint lacks.

The kill comes when 70 % of a training, an unlearning or a watched training are in its checkpoint; the epochs told by
later checkpoints show that it goes on from there, and the scores are those of an undisturbed run, bit for bit.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.kinds import load_plan
from tests.cases.processes import below, kill_all, start, wait_for
from tests.cases.smallest_plans import APOLLO, GNQ

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]

EPOCHS = 6000
MINUTES = 0.01
PLANS: dict[str, tuple[str, dict[str, Any]]] = {
    "train": ("apollo-smoke", {**APOLLO, "recipe.epochs": EPOCHS, "audit.attacks": ["single_query"]}),
    "unlearn": ("apollo-smoke", {**APOLLO, "unlearning.1.epochs": EPOCHS, "audit.attacks": ["single_query"]}),
    "watched": (
        "gnq-smoke",
        {
            **GNQ,
            "split": {"pools": 1, "train_size": 20, "shadows": 4, "test": 40},
            "recipe": {"learning_rate": 1e-4, "epochs": EPOCHS, "batch_size": 10},
            "audit.attacks": ["loss"],
            "audit.inversion": None,
            "audit.gradient_inversion": None,
            "audit.checkpoints": 20,
            "defences": [],
        },
    ),
}
STAGE = {"train": "train", "unlearn": "unlearn", "watched": "train"}


def begin(place: Path, work: str, workers: int, engine: str) -> Any:
    """Start the audit of ``work`` in ``place``, a process of its own."""
    place.mkdir(exist_ok=True)
    base, values = PLANS[work]
    compute = {"store": str(place / "store"), "workers": workers, "engine": engine, "checkpoint_minutes": MINUTES}
    plan = load_plan(base, values={**values, **{f"compute.{name}": value for name, value in compute.items()}})
    (place / "plan.yaml").write_text(yaml.safe_dump(plan.resolved()))
    return start("audit", plan.kind, "plan.yaml", "--out", "out", "--force", cwd=place)


def finish(driver: Any, place: Path) -> bytes:
    """Return the scores of a run that comes to its end."""
    said = driver.communicate()[0]
    assert driver.returncode == 0, said
    assert not list((place / "store").glob("checkpoints/*/*"))
    return (place / "out" / "scores.parquet").read_bytes()


def epochs_kept(place: Path, stage: str) -> dict[str, int]:
    """Return the epoch that each job of ``stage`` is in by its checkpoint: folder → epoch."""
    found: dict[str, int] = {}
    for file in (place / "store").glob(f"checkpoints/{stage}.*/*.safetensors"):
        try:
            data = file.read_bytes()
        except FileNotFoundError:  # replaced by a newer one
            continue
        if file.name.startswith("."):
            continue
        header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
        notes = json.loads(header["__metadata__"]["notes"])
        epoch = next(value for name, value in notes.items() if name.endswith("position/epoch") and value < EPOCHS)
        found[file.parent.name] = max(epoch, found.get(file.parent.name, 0))
    return found


def far_along(place: Path, stage: str) -> dict[str, int]:
    """Return the jobs of which 70 % and no more than 95 % are kept, with their epochs."""
    return {job: epoch for job, epoch in epochs_kept(place, stage).items() if 0.7 * EPOCHS <= epoch < 0.95 * EPOCHS}


def goes_on(place: Path, stage: str, job: str, kept: int) -> Callable[[], bool]:
    """Return what says whether a later checkpoint than that of epoch ``kept`` was written, or the job is done."""

    def later() -> bool:
        done = list((place / "store" / stage).glob(f"*/{job.partition('.')[2]}/manifest.json"))
        epoch = epochs_kept(place, stage).get(job)
        assert epoch is None or epoch >= kept, f"{job} began again: epoch {epoch} after {kept}"
        return bool(done) or (epoch is not None and epoch > kept)

    return later


def worker_of(driver: int) -> int:
    """Return the process of Ray's below ``driver`` that has computed longest: the one worker."""

    def seconds(pid: int) -> int:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return int(fields[11]) + int(fields[12])

    workers = [pid for pid, command in below(driver).items() if command.startswith("ray::")]
    return max(workers, key=seconds)


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("work", "workers", "engine", "victim"),
    [
        ("train", 0, "auto", "driver"),
        ("unlearn", 0, "auto", "driver"),
        ("watched", 0, "auto", "driver"),
        ("train", 1, "train", "driver"),
        ("unlearn", 1, "actors", "driver"),
        ("train", 1, "train", "worker"),
        ("unlearn", 1, "actors", "worker"),
        ("watched", 1, "actors", "worker"),
    ],
)
def test_what_is_killed_goes_on_from_its_checkpoint(
    tmp_path: Path, work: str, workers: int, engine: str, victim: str
) -> None:
    stage, place = STAGE[work], tmp_path / "killed"
    driver = begin(place, work, workers, engine)
    found: dict[str, int] = {}
    try:
        wait_for(lambda: found.update(far_along(place, stage)) or found, driver, 900)
        if victim == "worker":
            os.kill(worker_of(driver.pid), signal.SIGKILL)
        else:
            kill_all(driver)
        (job,) = found
        kept = max(found[job], epochs_kept(place, stage).get(job, 0))
        if victim == "driver":
            driver = begin(place, work, workers, engine)
        wait_for(goes_on(place, stage, job, kept), driver, 300)
        scores = finish(driver, place)
    finally:
        if driver.poll() is None:
            kill_all(driver)
    whole = tmp_path / "whole"
    assert scores == finish(begin(whole, work, 0, "auto"), whole)
