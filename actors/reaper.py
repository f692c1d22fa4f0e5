"""End what is left of a private Ray cluster once the process that started it is gone, however it went.

Ray's agents outlive a killed driver by a minute: before they go they report the raylet's death to a server that is dead
as well. Run as a script (it imports nothing slow): argument 1 is the mark that every process of the cluster has in its
environment; it waits for the end of its standard input, which the driver holds.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

MARK = "ORCH_CLUSTER"
GRACE_SECONDS = 1.0
"""Processes that end by themselves have so long."""
QUIET_SECONDS = 3.0
SWEEP_SECONDS = 60.0
"""A machine may be so busy that a killed process ends late, and one that begins is not to be recognised yet."""


@contextlib.contextmanager
def reaped(mark: str) -> Iterator[None]:
    """End all processes whose environment has ``MARK`` = ``mark`` when the block, or this process, is over."""
    command = [sys.executable, "-S", "-E", os.path.abspath(__file__), mark]
    nowhere = subprocess.DEVNULL
    # a session of its own: Ctrl-C, sent to all of a terminal's processes, must not end it
    reaper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True)
    assert reaper.stdin is not None
    try:
        yield
    finally:
        reaper.stdin.close()


def marked(mark: str) -> list[int]:
    """Return the living processes with the mark (none where there is no /proc)."""
    wanted, found = f"{MARK}={mark}".encode(), []
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdecimal() and int(name) != os.getpid():
            with contextlib.suppress(OSError), open(f"/proc/{name}/environ", "rb") as file:
                if wanted in file.read().split(b"\0"):
                    found.append(int(name))
    return found


def reap(mark: str) -> None:
    """Kill processes with the mark, after the grace, until none is found for a while."""
    begin = seen = time.monotonic()
    while time.monotonic() - seen < QUIET_SECONDS:
        left = marked(mark)
        if time.monotonic() - begin > GRACE_SECONDS:
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
        if left:
            seen = time.monotonic()
        if seen - begin > SWEEP_SECONDS:
            return
        time.sleep(0.2)


if __name__ == "__main__":
    sys.stdin.read()
    reap(sys.argv[1])
