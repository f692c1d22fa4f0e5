"""A ResNet-18 that two workers train together: one of them killed in the midst, the training goes on to equal bits.

So does the unlearning of the model. Both run through the queue of a Train group, as in an audit.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actors.jobs import Workers
from actors.pools import do_jobs
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.worker import WEIGHTS, OpenContexts
from orchestrator.engine.store.checkpoints import unpacked
from orchestrator.engine.store.faults import CorruptArtefact
from orchestrator.engine.store.store import Store
from orchestrator.engine.store.trust import Trust
from orchestrator.kinds import kind_named, load_plan, open_design
from tests.cases.processes import below
from tests.cases.smallest_plans import APOLLO

pytestmark = [pytest.mark.long, pytest.mark.cluster, pytest.mark.timeout(3600)]

EPOCHS = 60
PLAN: dict[str, Any] = {
    **APOLLO,
    "model": {"name": "resnet18", "settings": {"width": 8}},
    "recipe.epochs": EPOCHS,
    "recipe.batch_size": 16,
    "unlearning": [{"method": "finetune", "epochs": EPOCHS, "batch_size": 8}],
    "audit.attacks": ["single_query"],
    "compute.workers": 2,
    "compute.workers_per_model": 2,
    "compute.checkpoint_minutes": 0.01,
}


class Victim(threading.Thread):
    """Kills one of two workers once a training is a third through, and notes the epochs of all its checkpoints."""

    def __init__(self, store: Store, job: Job, first: bool) -> None:
        super().__init__(daemon=True)
        self.store, self.job, self.first = store, job, first
        self.epochs: list[int] = []
        self.killed_at: int | None = None
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.02):
            found = self.kept()
            if found is None or (self.epochs and self.epochs[-1] == found):
                continue
            self.epochs.append(found)
            if self.killed_at is None and found >= EPOCHS // 3:
                os.kill(self.worker(), signal.SIGKILL)
                self.killed_at = found

    def kept(self) -> int | None:
        """Return the epoch of the newest checkpoint, None where there is none, or it is just replaced."""
        folder = Path(self.store.uri.removeprefix("file://"), "checkpoints", f"{self.job.stage}.{self.job.key}")
        for file in sorted(folder.glob("[!.]*.safetensors")):
            try:
                kept = unpacked(str(file), file.read_bytes(), self.job.stage, self.job.key, Trust())
            except (FileNotFoundError, CorruptArtefact):
                continue
            return int(kept.notes["position/epoch"])
        return None

    def worker(self) -> int:
        """Return the process of the first or of the second worker, by the order in which Ray started them."""
        train = [pid for pid, command in below(os.getpid()).items() if "RayTrainWorker" in command]
        assert len(train) == 2, train
        return sorted(train)[0 if self.first else 1]


def carry_out(place: Path, cluster: Workers, jobs: Sequence[Job]) -> Store:
    plan = load_plan("apollo-smoke", values={**PLAN, "compute.store": str(place)})
    design = open_design(plan, Store(str(place)))
    opened = OpenContexts(
        kind_named("apollo"), {plan.plan_hash: plan.resolved()}, str(place), "cpu", design.data.fingerprint
    )
    store, stage = Store(str(place)), {job.key: job.stage for job in jobs}
    do_jobs(
        jobs,
        opened,
        replace(cluster, per_model=2),
        on_progress=lambda done, total: None,
        is_done=lambda key: store.has(stage[key], key),
    )
    return store


def test_a_killed_worker_of_two_costs_no_bit_of_a_resnet(cluster: Workers, tmp_path: Path) -> None:
    plan = load_plan("apollo-smoke", values=PLAN)
    all_jobs = open_design(plan).jobs()
    train = next(job for job in all_jobs if job.stage == "train")
    unlearn = next(job for job in all_jobs if job.stage == "unlearn" and job.needs[:1] == (train.key,))
    whole = carry_out(tmp_path / "whole", cluster, [train, unlearn])
    store = Store(str(tmp_path / "killed"))
    for job, first in ((train, False), (unlearn, True)):
        victim = Victim(store, job, first)
        victim.start()
        begin = time.monotonic()
        try:
            carry_out(tmp_path / "killed", cluster, [job])
        finally:
            victim.over.set()
        victim.join()
        told = job.stage, victim.killed_at, victim.epochs, time.monotonic() - begin
        logging.getLogger(__name__).info("%s: killed at epoch %s, kept %s, %.0f s", *told)
        assert victim.killed_at is not None
        assert victim.epochs == sorted(victim.epochs), "it began again"
        assert victim.epochs[-1] > victim.killed_at, "it did not go on"
        found, undisturbed = (each.get(job.stage, job.key).read(WEIGHTS) for each in (store, whole))
        assert found == undisturbed
