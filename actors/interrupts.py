"""Ctrl-C where it would leave something of others half done; SIGTERM and SIGHUP that end a command as Ctrl-C does.

A command is told to end by SIGTERM where nobody sits at it (``kill``, ``timeout``, a cancelled job of a CI, of Slurm or
of Ray), and by SIGHUP where its terminal is gone.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

ENDINGS: list[signal.Signals] = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
EXIT_CODES: tuple[int, ...] = tuple(128 + number for number in (signal.SIGINT, *ENDINGS))
"""Of processes that were interrupted."""
AGAIN_SECONDS = 0.1
_RECEIVED: list[int] = []


def end_as_by_ctrl_c() -> None:
    """Let SIGTERM and SIGHUP interrupt this process as Ctrl-C does; one that is ignored (``nohup``) stays so.

    Call it in the main thread. Forked children end at once, as before.
    """
    for number in ENDINGS:
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _interrupt)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=end_by_default)
    _raise_what_is_lost()


def _interrupt(number: int, frame: Any) -> None:
    _RECEIVED.append(number)
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)
    else:  # of a process in the background Ctrl-C is ignored
        raise KeyboardInterrupt


def _raise_what_is_lost() -> None:
    """Interrupt again where Python could not raise an interrupt, as in a callback of its garbage collection."""
    hook = sys.unraisablehook

    def look(lost: sys.UnraisableHookArgs) -> None:
        if not issubclass(lost.exc_type, KeyboardInterrupt):
            hook(lost)
            return
        again = threading.Timer(AGAIN_SECONDS, os.kill, (os.getpid(), _RECEIVED[-1] if _RECEIVED else signal.SIGINT))
        again.daemon = True
        with suppress(RuntimeError):  # the interpreter is ending
            again.start()

    sys.unraisablehook = look


def end_by_default() -> None:
    """Let SIGTERM and SIGHUP end this process at once, where they would interrupt it."""
    for number in ENDINGS:
        if signal.getsignal(number) is _interrupt:
            signal.signal(number, signal.SIG_DFL)


def told_to_end() -> bool:
    """Say whether this process was told to end by a signal other than Ctrl-C: nobody can be asked."""
    return bool(_RECEIVED)


def exit_code() -> int:
    """Return the exit code of an interrupted process: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP."""
    return 128 + (_RECEIVED[0] if _RECEIVED else signal.SIGINT)


@contextmanager
def endings_kept() -> Iterator[None]:
    """Give SIGTERM its handler back where the block took it: Ray's driver exits, and may crash on its way."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is _interrupt and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


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
