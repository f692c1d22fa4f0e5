"""Jobs on workers: in the calling process, by one Ray Train group, or by plain actors that come and go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol
from uuid import uuid4

from actors.actor_pool import ActorPool
from actors.capacity import require_room
from actors.cluster import connect, run_folder
from actors.failures import unpack_failure
from actors.interrupts import interrupt_held
from actors.job_queue import run_here
from actors.jobs import MAX_LOSSES, Job, MakePerform, Progress, Tell, Workers, WorkersLost
from actors.queue_server import QueueServer, QueueState
from actors.train_group import TrainGroup
from actors.words import OnWords

POLL_SECONDS = 0.1


class Host(Protocol):
    """What keeps worker processes alive that serve a queue."""

    @property
    def ended(self) -> str | None:
        """Return why no worker will come any more, None as long as some may."""

    def tend(self, state: QueueState) -> None:
        """Look after the workers: called some ten times a second."""

    def wait(self, seconds: float) -> None:
        """Wait until something happens to a worker, or for ``seconds``."""

    def close(self, given_up: bool) -> None:
        """End all workers; when the run is not given up they are ending by themselves."""


def silent(line: str) -> None:
    """Say nothing."""


def unheard(words: Mapping[str, str]) -> None:
    """Show no words."""


def do_jobs(
    jobs: Sequence[Job],
    make_perform: MakePerform,
    workers: Workers,
    *,
    on_progress: Progress,
    is_done: Callable[[str], bool],
    on_words: OnWords = unheard,
    tell: Tell = silent,
    max_losses: int = MAX_LOSSES,
) -> None:
    """Do all ``jobs`` (what is missing, decided by the caller) on ``workers``; a job starts when its needs are done.

    A job's exception stops the run and is raised here with its own type and message, after the jobs in progress are
    finished. A killed or hung worker or a lost node costs the jobs in progress: those for which ``is_done`` (asked in
    this process) finds no result are done again. ``on_words`` is called, some ten times a second while there are any,
    with the last words of the jobs in hand (``say``); ``tell`` is called with lines such as what is waited for. Raises
    BadInput when the cluster can never hold a worker, WorkersLost when a job killed its worker ``max_losses`` times or
    no worker is left.
    """
    if workers.count == 0 or not jobs:
        run_here(jobs, make_perform, on_progress, on_words)
        return
    QueueServer(jobs, max_losses)  # refuses circles and twins here, not in an actor
    with connect(workers):
        require_room(workers)
        queue = f"orch-queue-{uuid4().hex}"
        server = _server(queue, jobs, max_losses)
        if workers.engine == "actors":
            pool = partial(ActorPool, queue, make_perform, workers, tell)
            _serve(server, pool, on_progress, is_done, on_words)
            return
        with run_folder(workers, "population") as (storage, name):
            group = partial(TrainGroup, queue, make_perform, workers, storage, name)
            _serve(server, group, on_progress, is_done, on_words)


def _server(name: str, jobs: Sequence[Job], max_losses: int) -> Any:
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    kind = ray.remote(QueueServer).options(num_cpus=0, name=name, scheduling_strategy=here)
    return kind.remote(list(jobs), max_losses)


def _serve(
    server: Any,
    make_host: Callable[[], Host],
    on_progress: Progress,
    is_done: Callable[[str], bool],
    on_words: OnWords,
) -> None:
    import ray
    from ray.exceptions import RayActorError

    host: Host | None = None
    given_up = True
    try:
        with interrupt_held():
            host = make_host()
        state = _follow(server, host, on_progress, is_done, on_words)
        given_up = bool(state.given_up)
        ended = host.ended
    except RayActorError as error:
        raise WorkersLost(
            "the process that hands out the jobs ended unexpectedly; finished models are kept; run the same command "
            "again to go on"
        ) from error
    finally:
        server.stop.remote()
        if host is not None:
            host.close(given_up)
        ray.kill(server)
    if state.given_up:
        raise WorkersLost(state.given_up)
    if state.failure:
        raise unpack_failure(state.failure)
    if state.done < state.total:
        raise WorkersLost(f"the work stopped after {state.done} of {state.total} jobs: {ended}")


def _follow(
    server: Any, host: Host, on_progress: Progress, is_done: Callable[[str], bool], on_words: OnWords
) -> QueueState:
    """Show progress, settle what was lost and look after the workers, until there is nothing more to wait for."""
    import ray

    shown = -1
    while True:
        ended = host.ended
        state: QueueState = ray.get(server.state.remote())
        if state.doubtful:
            ray.get(server.settle.remote({key: is_done(key) for key in state.doubtful}))
        if state.done != shown:
            shown = state.done
            on_progress(state.done, state.total)
        if state.words:
            on_words(state.words)
        if state.given_up or state.done == state.total or ended or (state.failure and not state.leased):
            return state
        host.tend(state)
        host.wait(POLL_SECONDS)
