"""Commands in a terminal of their own: what they print there, and what a person types."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Thread
from unittest.mock import patch

from orchestrator.cli.main import main

ROOT = Path(__file__).parents[2]
ORCH = [sys.executable, "-m", "orchestrator.cli.main"]
CODES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-_=>])")
COLOURS = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|4[0-7]|9[0-7]|38;\d|48;\d)[\d;]*m")


def as_text(raw: str) -> str:
    """Return what a terminal got, without codes; a carriage return begins the line anew."""
    lines = CODES.sub("", raw).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rpartition("\r")[2] or line for line in lines)


@dataclass
class Screen:
    """A program in a terminal of ``columns`` × 50; ``raw``: all that it has written, as the terminal got it."""

    process: subprocess.Popen[bytes]
    master: int
    raw: str = ""

    @property
    def text(self) -> str:
        """What was written, without codes; a carriage return begins the line anew."""
        return as_text(self.raw)

    def read(self, until: str = "", seconds: float = 600.0) -> str:
        """Read on until a pattern is in the new text, or without one until the program ends; return the new text."""
        begin, deadline = len(self.raw), time.monotonic() + seconds
        while time.monotonic() < deadline:
            if until and re.search(until, CODES.sub("", self.raw[begin:])):
                return CODES.sub("", self.raw[begin:])
            if not select.select([self.master], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self.master, 65536)
            except OSError:  # the program has ended
                data = b""
            if not data:
                break
            self.raw += data.decode(errors="replace")
        new = CODES.sub("", self.raw[begin:])
        if until and not re.search(until, new):
            raise AssertionError(f"no {until!r} in {new!r}")
        return new

    def type(self, keys: str) -> None:
        """Type ``keys``."""
        os.write(self.master, keys.encode())

    def end(self) -> int:
        """Read until the program ends and return its exit code."""
        self.read()
        code = self.process.wait(600)
        os.close(self.master)
        return code


def opened(command: Sequence[str], folder: Path, columns: int = 80, **environment: str) -> Screen:
    """Start ``command`` in ``folder`` in a terminal of its own."""
    master, slave = terminal(columns)
    surroundings = {**as_in_a_terminal(columns), "PYTHONPATH": str(ROOT), **environment}
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=surroundings, start_new_session=True
    )
    os.close(slave)
    return Screen(process, master)


def terminal(columns: int) -> tuple[int, int]:
    """Return the two ends of a terminal of ``columns`` × 50."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    return master, slave


def as_in_a_terminal(columns: int) -> dict[str, str]:
    """Return the variables of a program in a terminal."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CI", "COLUMNS", "LINES")}
    return {**kept, "TERM": "xterm-256color", "COLUMNS": str(columns)}


@dataclass
class Shown:
    """What a command of this process has written to its terminal, and its exit code."""

    code: int
    raw: str

    @property
    def text(self) -> str:
        """What was written, without codes; a carriage return begins the line anew."""
        return as_text(self.raw)


def shown_here(words: Sequence[str], typed: str = "", columns: int = 80) -> Shown:
    """Run ``orch`` with ``words`` in this process, whose standard streams are a terminal meanwhile.

    ``typed``: what a person types, all at once. A process of its own takes seconds to import what this one has.
    """
    master, slave = terminal(columns)
    os.write(master, typed.encode())
    seen: list[bytes] = []
    reader = Thread(target=lambda: seen.extend(all_of(master)), daemon=True)
    reader.start()
    with (
        patch.dict(os.environ, as_in_a_terminal(columns), clear=True),
        open(os.dup(slave), encoding="utf-8") as stdin,
        open(slave, "w", encoding="utf-8", buffering=1) as stdout,
        patch.multiple(sys, stdin=stdin, stdout=stdout, stderr=stdout),
    ):
        code = main([*words])
    reader.join(60)
    os.close(master)
    return Shown(code, b"".join(seen).decode(errors="replace"))


def all_of(master: int) -> Iterator[bytes]:
    """Yield what is written to a terminal until all that write to it have closed it."""
    with suppress(OSError):
        while data := os.read(master, 65536):
            yield data
