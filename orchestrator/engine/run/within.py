"""How far the jobs in hand are: a small file each, which whoever does the job writes and the driver reads.

Files, since they serve the calling process and workers of this machine alike. Nothing depends on them.
"""

from __future__ import annotations

import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from audits.gradients.heard import heard
from audits.writing import write_whole
from orchestrator.engine.durations import seconds

WRITE_EVERY = 1.0
"""Seconds between two versions of a file."""
SAY_EVERY = 30.0
"""Seconds between two lines on a terminal."""


@contextmanager
def followed(folder: str, key: str, clock: Callable[[], float] = time.monotonic) -> Iterator[None]:
    """Write into ``folder`` meanwhile how far the computations of the job ``key`` are; "": nowhere."""
    if not folder:
        yield
        return
    file, begin = Path(folder) / key, clock()
    said = before = begin
    since: dict[str, float] = {}

    def write(what: str, share: float) -> None:
        nonlocal said, before
        now = clock()
        start = since.setdefault(what, before)
        before = now
        if now - said < WRITE_EVERY:
            return
        said = now
        left = (now - start) / share * (1 - share) if share > 0 else None
        with suppress(OSError):  # a full disk, or a run that has ended
            write_whole(file, json.dumps({"what": what, "share": share, "gone": now - begin, "left": left}).encode())

    try:
        with heard(write):
            yield
    finally:
        with suppress(OSError):
            file.unlink(missing_ok=True)


@contextmanager
def reported(names: Mapping[str, str], line: Callable[[str], None], every: float = SAY_EVERY) -> Iterator[str]:
    """Print meanwhile how far the jobs in hand are; yields the folder for ``followed``. ``names``: key → words."""
    with tempfile.TemporaryDirectory(prefix="orch-within-") as folder:
        over = threading.Event()

        def look() -> None:
            while not over.wait(every):
                for text in lines_of(Path(folder), names):
                    line(text)

        thread = threading.Thread(target=look, name="within", daemon=True)
        thread.start()
        try:
            yield folder
        finally:
            over.set()
            thread.join()


def lines_of(folder: Path, names: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each job in hand that says how far it is."""
    for key, name in names.items():
        with suppress(OSError, ValueError):
            now = json.loads((folder / key).read_text())
            left = "" if now["left"] is None else f", about {seconds(now['left'])} of that left"
            yield f"{name}: {now['what']} {now['share']:.0%}{left}, {seconds(now['gone'])} gone"
