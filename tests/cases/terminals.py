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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
ORCH = [sys.executable, "-m", "orchestrator.cli.main"]
CODES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07]*\x07|[@-_=>])")
COLOURS = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-7]|4[0-7]|9[0-7]|38;\d|48;\d)[\d;]*m")


@dataclass
class Screen:
    """A program in a terminal of ``columns`` × 50; ``raw``: all that it has written, as the terminal got it."""

    process: subprocess.Popen[bytes]
    master: int
    raw: str = ""

    @property
    def text(self) -> str:
        """What was written, without codes; a carriage return begins the line anew."""
        lines = CODES.sub("", self.raw).replace("\r\n", "\n").split("\n")
        return "\n".join(line.rpartition("\r")[2] or line for line in lines)

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
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "CI", "COLUMNS", "LINES")}
    surroundings = {**kept, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), "COLUMNS": str(columns), **environment}
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=surroundings, start_new_session=True
    )
    os.close(slave)
    return Screen(process, master)
