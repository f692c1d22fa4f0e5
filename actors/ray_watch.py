"""Notice at once that a process without which a private cluster cannot work has ended.

Ray itself takes up to minutes to say so, and ends the calling process by a signal when its patience is over.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from actors.jobs import Tell, WorkersLost
from audits.errors import BadInput

LOOK_SECONDS = 0.5
AGAIN_SECONDS = 5.0
"""An interrupt that was lost in foreign code is repeated."""
STUCK_SECONDS = 45.0
"""Interrupts have been lost for so long: foreign code waits for what has ended, until Ray ends the process with 1."""
BROKE = 3
NEEDED = ("gcs_server", "raylet")


class _Watch(threading.Thread):
    def __init__(self, last_words: Tell) -> None:
        super().__init__(name="ray-watch", daemon=True)
        self.last_words = last_words
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.dead = ""

    def run(self) -> None:
        while not self.over.wait(LOOK_SECONDS):
            self.dead = _dead()
            noticed = time.monotonic()
            while self.dead and not self.over.is_set():
                self.interrupt()
                self.over.wait(AGAIN_SECONDS)
                if time.monotonic() - noticed > STUCK_SECONDS:
                    self.end()

    def interrupt(self) -> None:
        """Interrupt the main thread, blocked or not; by no SIGINT, which a shell ignores for work in the background."""
        with self.lock:
            if not self.over.is_set():
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    def end(self) -> None:
        """End the process, whose main thread no interrupt reaches."""
        with self.lock:
            if not self.over.is_set():
                self.last_words(f"WorkersLost: {_lost(self.dead)}")
                os._exit(BROKE)

    def close(self) -> None:
        """Interrupt no more."""
        with self.lock:
            self.over.set()


def say(text: str) -> None:
    """Write a line to standard error."""
    os.write(2, f"{text}\n".encode())


@contextmanager
def watched(last_words: Tell = say) -> Iterator[None]:
    """Raise WorkersLost in the block when a process of the cluster that this one started has ended.

    Where the block does not come to notice it, ``last_words`` is told and the process ends with exit code 3. Call it in
    the main thread. Elsewhere nothing is watched: there is no way to interrupt another thread.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    watch = _Watch(last_words)
    before = signal.signal(signal.SIGUSR1, signal.default_int_handler)
    try:
        watch.start()  # which may be interrupted as well
        yield
    except (Exception, KeyboardInterrupt) as error:
        if watch.dead and not isinstance(error, BadInput):
            raise WorkersLost(_lost(watch.dead)) from error
        raise
    finally:
        watch.close()
        signal.signal(signal.SIGUSR1, before or signal.SIG_DFL)


def _lost(process: str) -> str:
    return f"Ray's {process} ended unexpectedly; finished models are kept; run the same command again to go on"


def _dead() -> str:
    """Return which needed process of this process's own node has ended, "" for none."""
    from ray._private import worker

    node = worker._global_node
    if node is None:
        return ""
    return next((str(kind) for kind, _ in node.dead_processes() if kind in NEEDED), "")
