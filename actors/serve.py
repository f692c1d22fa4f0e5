"""The one loop of every worker: take a job, do it, say so; a thread beside it beats."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

from actors.environment import limit_threads
from actors.failures import pack_failure
from actors.jobs import Elsewhere, MakePerform, Unfit
from actors.lives import Place
from actors.queue_server import STOP, WAIT

WAIT_SECONDS = 0.1
BEAT_SECONDS = 3.0


def serve(queue: str, worker: str, make_perform: MakePerform, threads: int, group: int | None = None) -> None:
    """Pull and do jobs until the queue says stop.

    ``queue`` is the name of an actor, a ``QueueServer`` (its handle among an actor's arguments would keep Ray from
    starting the actor again), ``worker`` the name under which it knows this process, ``group`` the size of the group
    that restarts as one, if there is one.
    """
    import ray

    server = ray.get_actor(queue)
    here = ray.get_runtime_context()
    place = Place(here.get_node_id(), ray.util.get_node_ip_address(), os.getpid())
    life = ray.get(server.begin.remote(worker, place, group))
    over = threading.Event()
    threading.Thread(target=_beat, args=(server, worker, life, over), name="beat", daemon=True).start()
    key = None
    try:
        limit_threads(threads)
        perform = make_perform()
        while True:
            order, job = ray.get(server.take.remote(worker, life))
            if order == STOP:
                return
            if order == WAIT:
                time.sleep(WAIT_SECONDS)
                continue
            key = job.key
            try:
                perform(job)
            except Elsewhere:
                server.postpone.remote(worker, life, key)
                continue
            ray.get(server.finish.remote(worker, life, key))
    except Unfit as error:
        ray.get(server.unfit.remote(worker, life, key, str(error)))
    except Exception as error:  # every failure travels through the queue, so that it arrives as itself
        ray.get(server.fail.remote(pack_failure(error), worker, life))
    finally:
        over.set()


def _beat(server: Any, worker: str, life: int, over: threading.Event) -> None:
    import ray

    while not over.wait(BEAT_SECONDS):
        try:
            ray.get(server.beat.remote(worker, life), timeout=BEAT_SECONDS * 10)
        except Exception:  # the queue is away or gone: the loop beside this thread will learn it
            continue
