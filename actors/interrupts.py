"""Ctrl-C where it would leave something of others half done."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def first_interrupt_noted(noted: threading.Event) -> Iterator[None]:
    """Note the first Ctrl-C instead of raising it, so that work ends between two steps; the second is raised.

    Python hands signals to the main thread only: in another one nothing is changed.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def note(number: int, frame: Any) -> None:
        noted.set()
        signal.signal(signal.SIGINT, before)

    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def interrupt_held() -> Iterator[None]:
    """Hold the first Ctrl-C back until the block is over, then raise KeyboardInterrupt; a second one is not held.

    For blocks in which Ray is imported or started: Ray half started cannot be shut down in order. One that is ignored
    (behind ``nohup`` or ``&``) stays so.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        yield
        return
    noted = threading.Event()
    with first_interrupt_noted(noted):
        yield
    if noted.is_set():
        raise KeyboardInterrupt
