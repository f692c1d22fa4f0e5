"""A process that does jobs for a run, named so that others can tell whether it still lives."""

from __future__ import annotations

import os
import secrets
import socket
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Owner:
    """The driver of a run: its host (for messages), ``machine`` (where its ``pid`` counts), its start, a random id."""

    host: str
    machine: str
    pid: int
    started: str
    id: str

    def __post_init__(self) -> None:
        """Raise TypeError for what is no process: a claim may say anything."""
        words = (self.host, self.machine, self.started, self.id)
        if type(self.pid) is not int or not all(isinstance(word, str) for word in words):
            raise TypeError("that is no process")

    def gone(self) -> bool:
        """Say whether the process is known to have ended; False for one on another machine."""
        return self.machine == machine() and _start_of(self.pid) not in (self.started, "?")

    def to_json(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


def this_process() -> Owner:
    """Return a new owner, which is this process."""
    return Owner(socket.gethostname(), machine(), os.getpid(), _start_of(os.getpid()), secrets.token_hex(8))


@cache
def machine() -> str:
    """Return what two processes have in common that see each other's pid: boot and pid namespace, else the host."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return f"{file.read().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _start_of(pid: int) -> str:
    """Return when a process began, in the system's ticks; "" for one that has ended, "?" where nobody says."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return "" if fields[0] in "ZX" else fields[19]
    except OSError:  # it has ended, it is hidden, or there is no /proc here
        try:
            os.kill(pid, 0)
        except (ProcessLookupError, OverflowError):
            return ""
        except OSError:
            return "?"
        return "?"
