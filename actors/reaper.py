"""End what is left of a private Ray cluster once the process that started it is gone, however it went.

Ray's agents outlive a killed driver by a minute: before they go they report the raylet's death to a server that is dead
as well. Run as a script (it imports nothing slow): argument 1 is the mark that every process of the cluster has in its
environment. Some write their title over that (agents do), so what comes below marked processes is remembered too. The
script waits for the end of its standard input, which the driver holds.
"""

from __future__ import annotations

import contextlib
import os
import select
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
LOOK_SECONDS, LOOK_OFTEN_SECONDS = 5.0, 30.0
"""Agents begin in the first seconds, which are looked at every second."""


@contextlib.contextmanager
def reaped(mark: str) -> Iterator[None]:
    """End all processes of the cluster with ``MARK`` = ``mark`` when the block, or this process, is over."""
    command = [sys.executable, "-S", "-E", "-P", os.path.abspath(__file__), mark]
    nowhere = subprocess.DEVNULL
    # a session of its own: Ctrl-C, sent to all of a terminal's processes, must not end it
    reaper = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True)
    assert reaper.stdin is not None
    try:
        yield
    finally:
        reaper.stdin.close()


def processes() -> dict[int, tuple[int, str]]:
    """Return the living processes: pid → (parent, when it began); none where there is no /proc."""
    found = {}
    for name in os.listdir("/proc") if os.path.isdir("/proc") else []:
        if name.isdecimal():
            with contextlib.suppress(OSError), open(f"/proc/{name}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
                if fields[0] not in "ZX":
                    found[int(name)] = (int(fields[1]), fields[19])
    return found


def marked(pid: int, mark: str) -> bool:
    """Say whether the environment of a process shows the mark."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
        return f"{MARK}={mark}".encode() in file.read().split(b"\0")
    return False


class Reaper:
    """Knows the processes of one cluster: pid → when it began."""

    def __init__(self, mark: str, driver: int) -> None:
        self.mark, self.driver = mark, driver
        self.known: dict[int, str] = {}

    def look(self, everywhere: bool = False) -> list[int]:
        """Remember processes that came; return all that live. ``everywhere``: marked ones, whatever their parent."""
        there = processes()
        self.known = {pid: start for pid, start in self.known.items() if there.get(pid, (0, ""))[1] == start}
        for pid, (parent, start) in there.items():
            if (everywhere or parent == self.driver) and pid not in self.known and marked(pid, self.mark):
                self.known[pid] = start
        more = True
        while more:
            new = {pid: start for pid, (parent, start) in there.items() if parent in self.known} | self.known
            more, self.known = len(new) > len(self.known), new
        return list(self.known)

    def wait(self) -> None:
        """Return when standard input ends."""
        begin = time.monotonic()
        while True:
            often = time.monotonic() - begin < LOOK_OFTEN_SECONDS
            if select.select([sys.stdin], [], [], 1.0 if often else LOOK_SECONDS)[0]:
                return
            self.look()

    def reap(self) -> None:
        """Kill the processes, after the grace, until none is found for a while."""
        begin = seen = time.monotonic()
        while time.monotonic() - seen < QUIET_SECONDS and seen - begin < SWEEP_SECONDS:
            left = self.look(everywhere=True)
            if time.monotonic() - begin > GRACE_SECONDS:
                for pid in left:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
            if left:
                seen = time.monotonic()
            time.sleep(0.2)


if __name__ == "__main__":
    reaper = Reaper(sys.argv[1], os.getppid())
    reaper.wait()
    reaper.reap()
