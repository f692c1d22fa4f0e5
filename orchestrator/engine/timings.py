"""Times of training steps, as measured or as stated."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Timings:
    """What training steps take, for the probes of several plans: each kind of step is timed once, in ``found``.

    ``images_per_second``: the throughput of training that somebody states for one worker; then nothing is timed.
    """

    images_per_second: float | None = None
    found: dict[tuple[Any, ...], tuple[float, int]] = field(default_factory=dict)
