"""The one loop of every worker: take a job, do it, say so; a thread beside it beats."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from os import getpid
from typing import Any

from actors.environment import limit_threads
from actors.failures import pack_failure
from actors.jobs import Elsewhere, Job, MakePerform, Unfit
from actors.lives import Place
from actors.queue_server import STOP, WAIT
from actors.teams import lost_a_mate, parted
from actors.words import listening
from audits.errors import BadInput
from audits.training.team import ALONE, Team

WAIT_SECONDS = 0.1
BEAT_SECONDS = 3.0


def serve(
    queue: str,
    worker: str,
    make_perform: MakePerform,
    threads: int,
    group: int | None = None,
    team: Team = ALONE,
) -> None:
    """Pull and do jobs until the queue says stop.

    ``queue`` is the name of an actor, a ``QueueServer`` (its handle among an actor's arguments would keep Ray from
    starting the actor again), ``worker`` the name under which it knows this process, ``group`` the size of the group
    that restarts as one, if there is one. Of a ``team`` the first worker pulls, the others do what it tells them; when
    one is lost, the others raise, so that the group is started again.
    """
    import ray

    server = ray.get_actor(queue)
    here = ray.get_runtime_context()
    place = Place(here.get_node_id(), ray.util.get_node_ip_address(), getpid())
    life = ray.get(server.begin.remote(worker, place, group))
    over = threading.Event()
    threading.Thread(target=_beat, args=(server, worker, life, over), name="beat", daemon=True).start()
    key = None
    try:
        limit_threads(threads)
        perform = make_perform() if team.size == 1 else make_perform(team)
        for job in _queued_jobs(server, worker, life, team) if team.leads else _shared_jobs(server, worker, life, team):
            key = job.key
            try:
                with listening(lambda key, words: server.hear.remote(worker, life, key, words)):
                    perform(job)
            except Elsewhere:
                server.postpone.remote(worker, life, key)
                continue
            if team.leads:
                ray.get(server.finish.remote(worker, life, key))
    except Exception as error:  # every failure travels through the queue, so that it arrives as itself
        if isinstance(error, Unfit) and team.size == 1:
            ray.get(server.unfit.remote(worker, life, key, str(error)))
            return
        if team.size > 1 and lost_a_mate(error) and not ray.get(server.is_over.remote()):
            raise
        told = BadInput(str(error)) if isinstance(error, Unfit) else error  # a group does without no machine
        ray.get(server.fail.remote(pack_failure(told), worker, life))
        parted(server, worker, life, team)
    finally:
        over.set()


def _queued_jobs(server: Any, worker: str, life: int, team: Team) -> Iterator[Job]:
    """Yield the jobs that the queue hands out, until it says stop, which the others of a team are told."""
    import ray

    while True:
        order, job = ray.get(server.take.remote(worker, life))
        if order == STOP:
            team.from_first(None)
            return
        if order == WAIT:
            time.sleep(WAIT_SECONDS)
            continue
        yield job


def _shared_jobs(server: Any, worker: str, life: int, team: Team) -> Iterator[Job]:
    """Yield the jobs with which the first worker of a team wants help, until it says that there are no more."""
    server.ready.remote(worker, life)
    while (job := team.from_first()) is not None:
        yield job


def _beat(server: Any, worker: str, life: int, over: threading.Event) -> None:
    import ray

    while not over.wait(BEAT_SECONDS):
        try:
            ray.get(server.beat.remote(worker, life), timeout=BEAT_SECONDS * 10)
        except Exception:  # the queue is away or gone: the loop beside this thread will learn it
            continue
