"""Progress of a long computation over points, for whoever listens: counted in points that passed through a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Listener = Callable[[str, float], None]
"""Takes what is computed, in words, and the share of it that is done, from 0 to 1."""


@dataclass
class Count:
    """Points of a computation, of ``total`` that will be passed through a model; a point counts once a pass."""

    what: str
    total: float
    done: float = 0.0


_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)
_COUNT: ContextVar[Count | None] = ContextVar("count", default=None)


@contextmanager
def heard(listener: Listener) -> Iterator[None]:
    """Let ``listener`` know meanwhile how far computations of this thread are; it must be quick."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


@contextmanager
def counted(what: str, total: float) -> Iterator[None]:
    """Take the points that are passed meanwhile as those of ``what``, ``total`` in all."""
    token = _COUNT.set(Count(what, max(1.0, total)))
    try:
        yield
    finally:
        _COUNT.reset(token)


def tell_passed(points: int) -> None:
    """Count so many ``points``, and tell the listener, if there is one."""
    listener, count = _LISTENER.get(), _COUNT.get()
    if listener is not None and count is not None:
        count.done += points
        listener(count.what, min(1.0, count.done / count.total))
