"""Runs of the command in a process of its own, and the processes below it, for tests that kill them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path


def start(
    *arguments: str, cwd: Path, program: Sequence[str] = ("-m", "orchestrator.cli.main")
) -> subprocess.Popen[str]:
    """Start ``orch`` with ``arguments`` in a session of its own; ``program``: how Python finds it."""
    return subprocess.Popen(
        [sys.executable, *program, *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )


def parents() -> dict[int, int]:
    """Return process → parent of all processes."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                found[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, IndexError):
                continue
    return found


def below(pid: int) -> dict[int, str]:
    """Return the descendants of ``pid`` with their command lines."""
    tree, found, waiting = parents(), {}, [pid]
    while waiting:
        parent = waiting.pop()
        for child, of in tree.items():
            if of == parent and child not in found:
                try:
                    found[child] = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
                except OSError:
                    continue
                waiting.append(child)
    return found


def wait_for(
    what: Callable[[], object], process: subprocess.Popen[str], seconds: float = 180.0, pause: float = 0.02
) -> None:
    """Wait until ``what()`` is true, asked after every ``pause``; fails when the process ends first or time is over."""
    end = time.monotonic() + seconds
    while not what():
        assert process.poll() is None, f"ended early: {process.communicate()[0]}"
        assert time.monotonic() < end, "waited too long"
        time.sleep(pause)


def kill_all(process: subprocess.Popen[str]) -> None:
    """Kill the process, so that it takes note of nothing else, and then everything that was below it."""
    doomed = below(process.pid)
    for pid in (process.pid, *doomed):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    process.communicate()
