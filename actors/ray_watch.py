"""Notice at once that a process without which a private cluster cannot work has ended.

Ray itself takes up to minutes to say so, and ends the calling process by a signal when its patience is over.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from actors.jobs import WorkersLost
from audits.errors import BadInput

LOOK_SECONDS = 0.5
AGAIN_SECONDS = 5.0
"""An interrupt that was lost in foreign code is repeated."""
NEEDED = ("gcs_server", "raylet")


class _Watch(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="ray-watch", daemon=True)
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.dead = ""

    def run(self) -> None:
        while not self.over.wait(LOOK_SECONDS):
            self.dead = _dead()
            while self.dead and not self.over.is_set():
                self.interrupt()
                self.over.wait(AGAIN_SECONDS)

    def interrupt(self) -> None:
        """Interrupt the main thread, blocked or not; by no SIGINT, which a shell ignores for work in the background."""
        with self.lock:
            if not self.over.is_set():
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def close(self) -> None:
        """Interrupt no more."""
        with self.lock:
            self.over.set()


@contextmanager
def watched() -> Iterator[None]:
    """Raise WorkersLost in the block when a process of the cluster that this one started has ended.

    Call it in the main thread. Elsewhere nothing is watched: there is no way to interrupt another thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watch = _Watch()
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    watch.start()
    try:
        yield
    except (Exception, KeyboardInterrupt) as error:
        if watch.dead and not isinstance(error, BadInput):
            raise WorkersLost(
                f"Ray's {watch.dead} ended unexpectedly; finished models are kept; run the same command again to go on"
            ) from error
        raise
    finally:
        watch.close()
        signal.signal(signal.SIGUSR1, before or signal.SIG_DFL)


def _dead() -> str:
    """Return which needed process of this process's own node has ended, "" for none."""
    from ray._private import worker

    node = worker._global_node
    if node is None:
        return ""
    return next((str(kind) for kind, _ in node.dead_processes() if kind in NEEDED), "")
