"""Workers as one Ray Train group: on one machine, where they start together and restart together."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

from actors.capacity import RoomWatch
from actors.jobs import MakePerform, Workers
from actors.queue_server import QueueState
from actors.serve import serve
from actors.teams import call_together, joined, leader

if TYPE_CHECKING:
    from ray.train.torch import TorchTrainer

MAX_RESTARTS = 1_000_000
"""Restarts of the worker group: the queue gives up a job, or workers that never get ready, long before."""
STOP_SECONDS = 30.0
"""How long a run that is given up may take to end. Its thread should not outlive its Ray: a process that started the
next cluster while such a thread was left was once aborted in Ray's core; whether by it was not shown."""
RESIZE_SECONDS = 600.0
"""How often a group that lost a node may grow again (growing restarts it)."""


class TrainGroup:
    """``trainer.fit()`` in a thread of its own, so that the caller's thread shows progress and takes Ctrl-C."""

    def __init__(self, queue: str, make_perform: MakePerform, workers: Workers, storage: str, name: str) -> None:
        self._workers = workers
        self._watch = RoomWatch(workers)
        self._killed: set[tuple[str, int]] = set()
        self._trainer = _trainer(queue, make_perform, workers, storage, name)
        self._thread = threading.Thread(target=self._run, name="ray-train", daemon=True)
        self._error: BaseException | None = None
        self._thread.start()

    def _run(self) -> None:
        try:
            self._trainer.fit()
        # told to the caller, who knows from the queue what it means (SystemExit: Ray was shut down meanwhile)
        except (Exception, SystemExit) as error:
            self._error = error

    @property
    def ended(self) -> str | None:
        """Why the group is over, None while it goes on."""
        return None if self._thread.is_alive() else _one_line(self._error)

    def tend(self, state: QueueState) -> None:
        """Kill hung workers of a private cluster (Train then restarts the group) and watch the room."""
        for name in state.silent:
            seen = state.workers[name]
            if self._workers.address is None and (name, seen.life) not in self._killed:
                self._killed.add((name, seen.life))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(seen.place.pid, signal.SIGKILL)
        self._watch.check()

    def wait(self, seconds: float) -> None:
        """Wait until the group is over, or for ``seconds``."""
        self._thread.join(seconds)

    def close(self, given_up: bool) -> None:
        """Wait until the group is over, not for ever when it is given up."""
        self._thread.join(STOP_SECONDS if given_up else None)


def _trainer(queue: str, make_perform: MakePerform, workers: Workers, storage: str, name: str) -> TorchTrainer:
    from ray.train import FailureConfig, RunConfig, ScalingConfig, UserCallback
    from ray.train.backend import Backend, BackendConfig
    from ray.train.torch import TorchTrainer

    size, folder = workers.per_model, f"{storage}/{name}" if workers.address is None else None

    class Together(Backend):  # type: ignore[misc]  # ray is untyped here
        """Tells workers that train a model together where they meet, whenever the group starts."""

        def on_start(self, worker_group: Any, backend_config: Any) -> None:
            call_together(worker_group, size, folder)

    class Teams(BackendConfig):  # type: ignore[misc]  # ray is untyped here
        """Workers join those of their model by themselves; those of different models would only tie their fates.

        No ``TorchConfig``, for which the controller of the run would import torch.
        """

        backend = "none"  # asked for by TorchTrainer

        @property
        def backend_cls(self) -> Any:
            return Together if size > 1 else Backend

    class Blame(UserCallback):  # type: ignore[misc]  # ray is untyped here
        """Tells the queue which workers died; a job is in the hands of the first of those who do it together."""

        def after_exception(self, run_context: Any, worker_exceptions: dict[int, Exception]) -> None:
            import ray

            blamed = {str(leader(rank, size)) for rank in worker_exceptions}
            ray.get(ray.get_actor(queue).blame.remote(sorted(blamed)))

    return TorchTrainer(
        partial(
            _serve, queue, make_perform, workers.threads, size, workers.gpus > 0
        ),  # unpickled by workers only; a config is not
        torch_config=Teams(),
        scaling_config=ScalingConfig(
            num_workers=workers.count if workers.address is None else (size, workers.count),
            use_gpu=workers.gpus > 0,
            resources_per_worker={"CPU": workers.cpus} | ({"GPU": workers.gpus} if workers.gpus else {}),
            elastic_resize_monitor_interval_s=RESIZE_SECONDS,
        ),
        run_config=RunConfig(
            name=name,
            storage_path=storage,
            failure_config=FailureConfig(
                max_failures=MAX_RESTARTS,
                controller_failure_limit=MAX_RESTARTS,
                max_preemption_failures=MAX_RESTARTS,
            ),
            callbacks=[Blame()],
        ),
    )


def _serve(queue: str, make_perform: MakePerform, threads: int, size: int, gpus: bool) -> None:
    """Serve the queue as one worker of the group, or of those that train a model together; one too many goes."""
    import ray.train

    context = ray.train.get_context()
    rank, count = context.get_world_rank(), context.get_world_size()
    if size == 1:
        serve(queue, str(rank), make_perform, threads, count)
    elif rank < count // size * size:
        with joined(rank, size, gpus) as team:
            serve(queue, str(rank), make_perform, threads, count, team)


def _one_line(error: BaseException | None) -> str:
    lines = [line.strip() for line in str(error or "Ray Train ended early").splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
