"""A command under observation: what it printed, which jobs began and ended, every process that came from it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tests.cases.processes import parents
from tests.long.counted import NOTES, PAGE, STARTED, Note, counted, notes

ROOT = Path(__file__).resolve().parents[2]
LEFT_SECONDS = 10.0
"""After this time no process may be left."""
MARK = "ORCH_TEST_MARK"


def born(pid: int) -> str:
    """Return when a process began, "" for one that ended (a zombie too); with the pid it names a process for good."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in "ZX" else fields[19]


def title(pid: int) -> str:
    """Return the command line of a process."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    return ""


class Command:
    """``orch`` started in ``folder`` in a session of its own; its workers note their jobs in ``noted``."""

    def __init__(self, folder: Path, name: str, noted: Path, *arguments: str, page: bool = False) -> None:
        self.noted = noted
        self.said, self.complained = noted.with_name(f"{name}.out"), noted.with_name(f"{name}.err")
        self.begin = time.time()
        self.mark = f"{name}-{os.getpid()}-{self.begin}"
        environment = {**os.environ, "PYTHONPATH": str(ROOT), NOTES: str(noted), MARK: self.mark, PAGE: str(int(page))}
        with self.said.open("w") as out, self.complained.open("w") as err:
            self.process = subprocess.Popen(
                counted(*arguments),
                cwd=folder,
                stdout=out,
                stderr=err,
                start_new_session=True,
                env=environment,
                preexec_fn=_heed_interrupts,
            )
        self.pid = self.process.pid
        self.seen = {self.pid: born(self.pid)}
        self.end: float | None = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        while not self.over.wait(0.25):
            self.look()

    def look(self) -> None:
        """Note processes that came below those that are known."""
        tree = parents()
        new = True
        while new:
            new = False
            for pid, parent in tree.items():
                if parent in self.seen and pid not in self.seen and self.seen[parent] == born(parent) != "":
                    self.seen[pid] = born(pid)
                    new = True

    def ended(self) -> bool:
        """Say whether the command is over."""
        if self.process.poll() is None:
            return False
        self.end = self.end or time.time()
        return True

    def wait(self, what: Callable[[], object], seconds: float) -> bool:
        """Wait until ``what()``; False when the command ended before, or the time is over."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if what():
                return True
            if self.ended():
                return bool(what())
            time.sleep(0.02)
        return False

    def started(self) -> bool:
        """Say whether Python has come to the command."""
        return any(note.word == STARTED and note.pid == self.pid for note in self.notes())

    def notes(self) -> list[Note]:
        """Return what was noted since the command began."""
        return [note for note in notes(self.noted) if note.time >= self.begin]

    def begun(self) -> list[Note]:
        """Return the jobs that began since the command did."""
        return [note for note in self.notes() if note.word == "begin"]

    def at_work(self) -> dict[int, Note]:
        """Return process → the job that it does."""
        found: dict[int, Note] = {}
        for note in self.notes():
            found.pop(note.pid, None)
            if note.word == "begin":
                found[note.pid] = note
        return {pid: note for pid, note in found.items() if born(pid)}

    def says(self, *words: str) -> bool:
        """Say whether a line of standard output begins with one of ``words``."""
        return any(line.startswith(words) for line in self.said.read_text(errors="replace").splitlines())

    def complaints(self) -> list[str]:
        """Return the lines of standard error."""
        return [line for line in self.complained.read_text(errors="replace").splitlines() if line.strip()]

    def last(self) -> str:
        """Return the last line that was printed, of standard error if there is any."""
        lines = self.complaints() or self.said.read_text(errors="replace").splitlines()
        return lines[-1] if lines else "nothing said"

    def named(self, *names: str) -> list[int]:
        """Return the living processes whose command line has one of ``names``."""
        self.look()
        return [pid for pid in self.living() if any(name in title(pid) for name in names)]

    def living(self) -> list[int]:
        """Return all living processes of the command, itself included."""
        return [pid for pid, when in list(self.seen.items()) if when and born(pid) == when]

    def strays(self) -> list[int]:
        """Return living processes that carry the command's mark and were never seen below it."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal() and int(entry.name) not in self.seen:
                with contextlib.suppress(OSError):
                    if self.mark.encode() in (entry / "environ").read_bytes() and born(int(entry.name)):
                        found.append(int(entry.name))
        return found

    def close(self) -> list[str]:
        """Wait until all processes are gone after the command's end; kill those that are left after 10 s, and name
        them."""
        self.process.wait()
        self.ended()
        end = time.monotonic() + LEFT_SECONDS
        while (self.living() or self.strays()) and time.monotonic() < end:
            time.sleep(0.1)
            self.look()
        left = [*self.living(), *self.strays()]
        names = [title(pid)[:80] or "?" for pid in left]
        for pid in left:
            send(pid, signal.SIGKILL)
        self.over.set()
        self.thread.join()
        return names

    def kill(self) -> None:
        """Kill everything at once."""
        self.look()
        for pid in self.living():
            send(pid, signal.SIGKILL)


def _heed_interrupts() -> None:
    """Undo what a shell does to commands in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def send(pid: int, number: signal.Signals) -> None:
    """Send a signal to a process that may be gone."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
