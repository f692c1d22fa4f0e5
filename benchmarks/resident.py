"""The memory that a process holds, as the system counts it."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from pathlib import Path


def resident_bytes(reset: bool = False) -> int:
    """Return the most memory that this process has held; ``reset`` lets the count begin at what it holds now.

    Where that cannot be reset (other systems than Linux), the count goes back to the start of the process.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        if reset:
            # Some containers refuse (or ignore) it: the count then goes back to the start as well.
            with suppress(OSError):
                Path("/proc/self/clear_refs").write_text("5")
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
