"""Strike a command with a fault when its moment has come."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.long.disturbed import Command, born, send
from tests.long.fault_kinds import ATTACKS, END, MODELS, OF_RAY, RAY, START, Fault

LONG = 300.0
STOPPED_SECONDS = 60.0
SILENT_SECONDS = 20.0
FURTHER = ("attacking", "settings: ")
KILLED: Counter[str] = Counter()
"""Processes of Ray by name → how often one of them was killed."""


class Missed(Exception):
    """The command ended before the moment came."""


def await_moment(fault: Fault, command: Command) -> None:
    """Return when the fault shall strike; raises Missed."""

    def come(what: Callable[[], object]) -> None:
        if not command.wait(what, LONG):
            raise Missed

    if fault.moment == START:
        come(command.started)
        time.sleep(2 * fault.chance)
    elif fault.moment == RAY:
        come(lambda: command.says("Ray: "))
        time.sleep(0.2 + 6 * fault.chance)
    elif fault.moment == MODELS:
        come(lambda: len(command.begun()) >= fault.after)
    elif fault.moment == ATTACKS:
        come(lambda: command.says(*FURTHER))
        now = time.time()
        come(lambda: sum(note.time > now for note in command.begun()) >= fault.after)
    elif fault.moment == END:
        come(lambda: command.says("summing up: 3"))
        time.sleep(fault.chance)
    if command.ended():
        raise Missed


def stage(command: Command) -> str:
    """Return where a command is."""
    if command.says("summing up: 3"):
        return END
    if command.says(*FURTHER):
        return ATTACKS
    if command.begun():
        return MODELS
    return RAY if command.says("Ray: ") else START


def strike(fault: Fault, command: Command, place: Place) -> Callable[[], bool]:
    """Do the harm; return what says that the run is over it (as long as the command lives)."""
    fault.struck = stage(command)
    kind = fault.kind
    if kind in ("kill -9 worker", "worker stopped for a minute"):
        if not command.wait(command.at_work, LONG):
            raise Missed
        pid, job = random.Random(fault.chance).choice(sorted(command.at_work().items()))
        fault.at = time.time()
        if kind == "kill -9 worker":
            send(pid, signal.SIGKILL)
        else:
            stop_for_a_minute(pid)
        return lambda: any(n.key == job.key and n.pid != pid and n.time > fault.at for n in command.notes())
    if kind == "kill -9 of a process of Ray":
        there = {name: found for name in OF_RAY if (found := command.named(name))}
        if not there:
            raise Missed
        name = least_struck(list(there), fault.chance)
        found = there[name]
        fault.struck += f", {name.rpartition('::')[2].rpartition('/')[2]}"
        fault.at = time.time()
        send(found[0], signal.SIGKILL)
        return lambda: False
    fault.at = time.time()
    if kind == "kill -9 driver":
        send(command.pid, signal.SIGKILL)
    elif kind == "Ctrl-C":
        os.killpg(command.pid, signal.SIGINT)
    elif kind == "driver stopped for a minute":
        stop_for_a_minute(command.pid)
        return lambda: time.time() > fault.at + STOPPED_SECONDS + 1.0
    elif kind == "S3 answers 500 for 20 s":
        place.silent_until = fault.at + SILENT_SECONDS
        return lambda: place.answered > fault.at + SILENT_SECONDS
    elif kind == "disk full":
        place.fill()
    return lambda: False


def least_struck(names: Sequence[str], chance: float) -> str:
    """Return that of ``names`` which was killed least so far; among equals ``chance`` decides."""
    fewest = min(KILLED[name] for name in names)
    left = [name for name in names if KILLED[name] == fewest]
    name = left[int(chance * len(left))]
    KILLED[name] += 1
    return name


def stop_for_a_minute(pid: int) -> None:
    """Stop a process; it goes on after a minute, if it still is there."""
    when = born(pid)

    def go_on() -> None:
        if born(pid) == when:
            send(pid, signal.SIGCONT)

    send(pid, signal.SIGSTOP)
    timer = threading.Timer(STOPPED_SECONDS, go_on)
    timer.daemon = True
    timer.start()


class Place:
    """Where a run's store lies: ``uri`` as the run sees it, ``own`` as its examiner does."""

    def __init__(self, folder: Path, uri: str, own: str) -> None:
        self.folder, self.uri, self.own = folder, uri, own
        self.silent_until = self.answered = 0.0

    def fault(self, method: str, path: str) -> int | None:
        """Answer 500 for a while (of the proxy before S3)."""
        if time.time() < self.silent_until:
            return 500
        self.answered = time.time()
        return None

    def fill(self) -> None:
        """Leave no byte of room."""
        handle = os.open(self.folder / "balloon", os.O_WRONLY | os.O_CREAT)
        try:
            for size in (2**20, 2**12):
                with contextlib.suppress(OSError):
                    while True:
                        os.write(handle, bytes(size))
        finally:
            os.close(handle)

    def free(self) -> None:
        """Give the room back."""
        (self.folder / "balloon").unlink(missing_ok=True)
