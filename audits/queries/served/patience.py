"""Requests that are made again while a server fails to answer, and no faster than it allows."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TypeVar

from audits.errors import BadInput, ServerSilent

FIRST_PAUSE, LONGEST_PAUSE = 0.2, 8.0
TELL_AFTER = 4.0
"""Seconds of silence after which one line says what is being waited for."""

R = TypeVar("R")

_chance = random.SystemRandom()  # leaves the global generator as it is
_log = logging.getLogger(__name__)


class Unanswered(Exception):
    """A request failed in a way that may pass; ``wait``: the seconds that the server asks for, if it does."""

    def __init__(self, cause: str, wait: float | None = None) -> None:
        super().__init__(cause)
        self.wait = wait


@dataclass(frozen=True)
class Pace:
    """How a server is asked: ``batch`` inputs a request, at most so many requests and queries (inputs) per second.

    The rates are those of one process. ``patience``: seconds for which one request is tried again.
    """

    batch: int = 256
    requests_per_second: float | None = None
    queries_per_second: float | None = None
    patience: float = 60.0

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise BadInput(f"batch is {self.batch}; a request holds 1 input or more")
        for name in ("requests_per_second", "queries_per_second"):
            rate = getattr(self, name)
            if rate is not None and not rate > 0:
                raise BadInput(f"{name} is {rate}; give a rate above 0, or none")

    def seconds(self, queries: int) -> float:
        """Return how long a request of ``queries`` inputs uses up."""
        by_requests = 1 / self.requests_per_second if self.requests_per_second else 0.0
        return max(by_requests, queries / self.queries_per_second if self.queries_per_second else 0.0)


@dataclass
class Patience:
    """Makes requests to the server at ``place`` (as shown to the user) at a pace, each until it is answered.

    What raises Unanswered is tried again for ``pace.patience`` seconds, then ServerSilent is raised; every other
    exception is raised at once.
    """

    place: str
    pace: Pace
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    free: float = field(default=float("-inf"), init=False)
    """When the rates allow the next request."""

    def ask(self, request: Callable[[], R], queries: int) -> R:
        """Return the answer to ``request``, which asks ``queries`` inputs and must be safe to repeat."""
        begin, pause, told, limit = self.clock(), FIRST_PAUSE, False, self.pace.patience
        while True:
            self.keep_pace(queries)
            try:
                return request()
            except Unanswered as error:
                waited = self.clock() - begin
                left, wait = limit - waited, error.wait or 0.0
                if left <= 0 or wait > left:
                    asks = f" and asks to wait {wait:.0f} s more" if wait > max(left, 0) else ""
                    raise ServerSilent(
                        f"{self.place} did not answer for {waited:.0f} s{asks}: {error}; what is recorded is "
                        f"kept; run the same command again, or raise patience ({limit:g} s)"
                    ) from error
                if waited + wait >= TELL_AFTER and not told:
                    told = True
                    _log.warning("%s does not answer (%s); trying again for %.0f s", self.place, error, left)
                self.sleep(min(max(pause * _chance.uniform(0.5, 1.0), wait), left))
                pause = min(2 * pause, LONGEST_PAUSE)

    def keep_pace(self, queries: int) -> None:
        """Sleep until the rates allow another request."""
        now = self.clock()
        if now < self.free:
            self.sleep(self.free - now)
        self.free = max(now, self.free) + self.pace.seconds(queries)


def retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds that a Retry-After header asks for, a number or a date; None for anything else."""
    if value is None:
        return None
    try:
        return float(value) if value.strip().isdecimal() else max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None
