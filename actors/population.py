"""A population of models through one Ray Train run: its workers pull jobs from one queue until all are done."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from actors.capacity import RoomWatch, require_room
from actors.cluster import connect, run_folder
from actors.environment import limit_threads
from actors.failures import pack_failure, unpack_failure
from actors.job_queue import STOP, WAIT, JobQueue, QueueServer, QueueState, run_here
from actors.jobs import Job, MakePerform, Progress, Workers, WorkersLost

if TYPE_CHECKING:
    from ray.train.torch import TorchTrainer

MAX_RESTARTS = 8
"""Restarts of the worker group (killed workers, lost nodes) before the run fails."""
POLL_SECONDS = 0.1
WORKER_WAIT_SECONDS = 0.1
STOP_SECONDS = 30.0
"""How long a run that is given up may take to end. Its thread should not outlive its Ray: a process that started the
next cluster while such a thread was left was once aborted in Ray's core; whether by it was not shown."""
RESIZE_SECONDS = 600.0
"""How often a group that lost a node may grow again (growing restarts it)."""


def train_population(
    jobs: Sequence[Job],
    make_perform: MakePerform,
    workers: Workers,
    *,
    on_progress: Progress,
    is_done: Callable[[str], bool],
) -> None:
    """Do all ``jobs`` (what is missing, decided by the caller) on ``workers``; a job starts when its needs are done.

    A job's exception stops the run and is raised here with its own type and message, after the jobs in progress are
    finished. A killed worker or a lost node costs the jobs in progress: those for which ``is_done`` (asked in this
    process) finds no result are done again. Raises BadInput when the cluster cannot hold the workers, WorkersLost when
    a job killed its worker too often or no worker is left.
    """
    if workers.count == 0 or not jobs:
        run_here(jobs, make_perform, on_progress)
        return
    queue = JobQueue(jobs)
    with connect(workers):
        require_room(workers)
        _train(queue, {job.key: job for job in jobs}, make_perform, workers, on_progress, is_done)


def _train(
    queue: JobQueue,
    jobs: dict[str, Job],
    make_perform: MakePerform,
    workers: Workers,
    on_progress: Progress,
    is_done: Callable[[str], bool],
) -> None:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    server: Any = ray.remote(QueueServer).options(num_cpus=0, scheduling_strategy=here).remote(queue)
    with run_folder(workers, "population") as (storage, name):
        run = _Fit(_trainer(server, jobs, make_perform, workers, storage, name))
        run.start()
        try:
            state = _follow(server, run, workers, on_progress, is_done)
        finally:
            server.stop.remote()
        run.wait(STOP_SECONDS if state.given_up else None)
        if state.given_up:
            raise WorkersLost(f"{state.given_up}{workers.see_log()}")
        if state.failure:
            raise unpack_failure(state.failure)
        if state.done < state.total:
            raise WorkersLost(
                f"training stopped after {state.done} of {state.total} jobs: {_one_line(run.error)}{workers.see_log()}"
            )


def _follow(
    server: Any, run: _Fit, workers: Workers, on_progress: Progress, is_done: Callable[[str], bool]
) -> QueueState:
    """Show progress and settle what was lost, until there is nothing more to wait for."""
    import ray

    watch = RoomWatch(workers)
    shown = -1
    while True:
        ended = run.ended
        state: QueueState = ray.get(server.state.remote())
        if state.doubtful:
            server.settle.remote({key: is_done(key) for key in state.doubtful})
        if state.done != shown:
            shown = state.done
            on_progress(state.done, state.total)
        if state.given_up or state.failure or state.done == state.total or ended:
            return state
        watch.check()
        run.wait(POLL_SECONDS)


class _Fit:
    """``trainer.fit()`` in a thread of its own, so that the caller's thread shows progress and takes Ctrl-C."""

    def __init__(self, trainer: TorchTrainer) -> None:
        self._trainer = trainer
        self._thread = threading.Thread(target=self._run, name="ray-train", daemon=True)
        self.error: BaseException | None = None

    def _run(self) -> None:
        try:
            self._trainer.fit()
        # told to the caller, who knows from the queue what it means (SystemExit: Ray was shut down meanwhile)
        except (Exception, SystemExit) as error:
            self.error = error

    def start(self) -> None:
        self._thread.start()

    def wait(self, seconds: float | None) -> None:
        self._thread.join(seconds)

    @property
    def ended(self) -> bool:
        return not self._thread.is_alive()


def _trainer(
    server: Any, jobs: dict[str, Job], make_perform: MakePerform, workers: Workers, storage: str, name: str
) -> TorchTrainer:
    from ray.train import FailureConfig, RunConfig, ScalingConfig, UserCallback
    from ray.train.backend import BackendConfig
    from ray.train.torch import TorchTrainer

    class NoGroup(BackendConfig):  # type: ignore[misc]  # ray is untyped here
        """Workers train different models: a process group would only tie their fates and need open ports.

        No ``TorchConfig``, for which the controller of the run would import torch.
        """

        backend = "none"  # asked for by TorchTrainer

    class Blame(UserCallback):  # type: ignore[misc]  # ray is untyped here
        """Tells the queue which workers died."""

        def after_exception(self, run_context: Any, worker_exceptions: dict[int, Exception]) -> None:
            import ray

            ray.get(server.blame.remote(list(worker_exceptions)))

    return TorchTrainer(
        partial(_serve, server, jobs, make_perform, workers.threads),  # unpickled by workers only; a config is not
        torch_config=NoGroup(),
        scaling_config=ScalingConfig(
            num_workers=workers.count if workers.address is None else (1, workers.count),
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


def _serve(server: Any, jobs: dict[str, Job], make_perform: MakePerform, threads: int) -> None:
    """Pull and do jobs until the queue says stop (runs in each worker of the group)."""
    import ray
    import ray.train

    context = ray.train.get_context()
    rank = context.get_world_rank()
    life = ray.get(server.begin.remote(rank, context.get_world_size()))
    try:
        limit_threads(threads)
        perform = make_perform()
        while True:
            order, key = ray.get(server.take.remote(rank, life))
            if order == STOP:
                return
            if order == WAIT:
                time.sleep(WORKER_WAIT_SECONDS)
                continue
            perform(jobs[key])
            ray.get(server.finish.remote(key))
    except Exception as error:  # every failure travels through the queue, so that it arrives as itself
        ray.get(server.fail.remote(pack_failure(error)))


def _one_line(error: BaseException | None) -> str:
    lines = [line.strip() for line in str(error or "Ray Train ended early").splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
