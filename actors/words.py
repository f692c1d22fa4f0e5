"""Messages of a job while it runs, such as its progress: heard at once in one process, by the queue from workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

Listener = Callable[[str, str], None]
"""Takes the key of a job and a few words; it must be quick."""

OnWords = Callable[[Mapping[str, str]], None]
"""Called in the driver's calling thread with the last words of each job in hand that has said any, by key."""

_LISTENER: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Let ``listener`` hear meanwhile what jobs of this thread say."""
    token = _LISTENER.set(listener)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def say(key: str, words: str) -> None:
    """Say ``words`` about the job ``key`` that this thread does; nothing comes of it if nobody listens."""
    if (listener := _LISTENER.get()) is not None:
        listener(key, words)
