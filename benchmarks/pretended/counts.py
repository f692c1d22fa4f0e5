"""Counts of what a device is asked, by the line of the project that asks."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tuple(f"{ROOT / folder}/" for folder in ("audits", "orchestrator", "actors"))
HERE = f"{Path(__file__).resolve().parent}/"
OWN = f"{ROOT}/"
LIBRARIES = "/site-packages/"  # of an environment that may stand inside the checkout


@dataclass
class Counts:
    """``launches``: calls of aten that compute on the device, by line; views, allocations and copies to and from the
    host are none. A call is one launch at least. ``syncs``: "line reason", where the host waits for the device:
    scalars read, shapes that depend on values, copies to the host, errors checked. ``copies``: from the host to the
    device, by line. A line is that of the innermost frame in ``audits``, ``orchestrator`` or ``actors``, or else of the
    caller outside of the libraries."""

    launches: Counter[str] = field(default_factory=Counter)
    syncs: Counter[str] = field(default_factory=Counter)
    copies: Counter[str] = field(default_factory=Counter)
    recorded: bool = False
    """Whether what is asked now belongs to something that was recorded, and is handed over with it."""

    def launch(self) -> None:
        """Note a launch."""
        if not self.recorded:
            self.launches[place()] += 1

    @contextmanager
    def played(self) -> Iterator[None]:
        """Count all that is launched within as one launch."""
        self.launch()
        self.recorded = True
        try:
            yield
        finally:
            self.recorded = False

    def sync(self, reason: str) -> None:
        """Note that the host waits."""
        self.syncs[f"{place()} {reason}"] += 1

    def copy(self) -> None:
        """Note a copy from the host."""
        self.copies[place()] += 1

    def clear(self) -> None:
        """Begin anew."""
        for counter in (self.launches, self.syncs, self.copies):
            counter.clear()


def place() -> str:
    """Return "file:line" of the innermost frame of the project, else of the innermost one beside it, else "?"."""
    frame: FrameType | None = sys._getframe(1)
    beside = "?"
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(PROJECT):
            return f"{file.removeprefix(OWN)}:{frame.f_lineno}"
        if beside == "?" and file.startswith(OWN) and not file.startswith(HERE) and LIBRARIES not in file:
            beside = f"{file.removeprefix(OWN)}:{frame.f_lineno}"
        frame = frame.f_back
    return beside
