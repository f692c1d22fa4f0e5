"""The progress of a run: what one look at the store saw, and what the page shows of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

LOOK_SECONDS = 10.0
"""Between two looks at what is done, and between two versions of the page."""

CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while a laptop sleeps, where there is such a clock."""
_ZERO = time.time() - time.clock_gettime(CLOCK)

Phase = Literal["running", "summing up", "finished", "stopped", "unreported"]
"""Jobs go on; all are done; nothing more will come; the run broke off before its result, or between result and page."""


def now() -> float:
    """Return the time (seconds since 1970) by a clock that nobody sets: that of the machine when this process began."""
    return _ZERO + time.clock_gettime(CLOCK)


@dataclass(frozen=True)
class Look:
    """What was done ``at`` a time (seconds since 1970): jobs by stage, of each setting (done, needed), and the numbers.

    ``compared``: settings of which everything is done → the numbers by which a sweep compares settings.
    """

    at: float
    needed: Mapping[str, int]
    done: Mapping[str, int]
    settings: Mapping[str, tuple[int, int]]
    compared: Mapping[str, Mapping[str, float]]

    def metrics(self, over: bool = False) -> dict[str, float]:
        """Return jobs needed and done by stage, as metrics; all are done when the work is ``over``."""
        needed = {f"jobs.{stage}.needed": float(count) for stage, count in self.needed.items()}
        done = self.needed if over else self.done
        return needed | {f"jobs.{stage}.done": float(count) for stage, count in done.items()}


@dataclass(frozen=True)
class StageProgress:
    """Jobs of one stage; ``left``: seconds that are left at the pace of this run, None while there is no pace."""

    name: str
    done: int
    needed: int
    left: float | None = None


@dataclass(frozen=True)
class SettingProgress:
    """Jobs of one setting, and its numbers once they are there."""

    name: str
    done: int
    needed: int
    numbers: Mapping[str, float]


@dataclass(frozen=True)
class Progress:
    """A run that is not finished, for its page.

    ``settings``: none for a run of one; ``what``: words for this part of the work, "" for all of it; ``cause``: why the
    run stopped.
    """

    name: str
    kind: str
    plan: Mapping[str, Any]
    phase: Phase
    since: float
    looked: float
    stages: tuple[StageProgress, ...] = ()
    settings: tuple[SettingProgress, ...] = ()
    what: str = ""
    cause: str = ""
