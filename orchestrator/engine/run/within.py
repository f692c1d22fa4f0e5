"""Progress of the jobs in hand: whoever does a job says it in words, and the driver prints them now and then.

Nothing depends on them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from actors.words import say
from audits.gradients.heard import heard
from orchestrator.engine.durations import seconds

TELL_EVERY = 3.0
"""Seconds between two times that a job says how far it is."""
SAY_EVERY = 30.0
"""Seconds between two lines on a terminal about the same job, and before the first one."""

LEAST_SHARE = 0.02
"""Share of a computation below which nothing is said of the time left: what starts up is most of what is gone."""


@contextmanager
def followed(key: str, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Say meanwhile how far the computations of the job ``key`` are: the first time at once, then now and then."""
    begin = before = clock()
    told: float | None = None
    since: dict[str, float] = {}

    def tell(what: str, share: float) -> None:
        nonlocal told, before
        now = clock()
        start = since.setdefault(what, before)
        before = now
        if told is not None and now - told < TELL_EVERY:
            return
        told = now
        left = f", about {seconds((now - start) / share * (1 - share))} of that left" if share >= LEAST_SHARE else ""
        say(key, f"{what} {share:.0%}{left}, {seconds(now - begin)} gone")

    with heard(tell):
        yield


@dataclass
class Reported:
    """Prints what jobs in hand say, each so often; ``names``: key → words for the job."""

    names: Mapping[str, str]
    line: Callable[[str], None]
    every: float = SAY_EVERY
    clock: Callable[[], float] = time.monotonic
    _printed: dict[str, tuple[float, str]] = field(default_factory=dict)

    def __call__(self, words: Mapping[str, str]) -> None:
        """Take the last words of the jobs in hand, by key, and print those that are due and new."""
        now = self.clock()
        for key, text in words.items():
            at, last = self._printed.setdefault(key, (now, ""))
            if now - at >= self.every and text != last:
                self._printed[key] = (now, text)
                self.line(f"{self.names[key]}: {text}")
