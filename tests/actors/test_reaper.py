"""What a private cluster leaves is ended when its driver is; a cluster that breaks ends the work at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from actors import ray_watch
from actors.jobs import WorkersLost
from actors.reaper import MARK, processes
from audits.errors import BadInput
from tests.cases.processes import below

CLUSTER = f"""
import os, subprocess, sys, time
unmarked = {{name: value for name, value in os.environ.items() if name != {MARK!r}}}
subprocess.Popen(["sleep", "61.5"], env=unmarked, stdout=subprocess.DEVNULL)
time.sleep(60)
"""
DRIVER = f"""
import os, subprocess, sys, time
from actors.reaper import reaped
with reaped("of-this-test"):
    environment = {{**os.environ, {MARK!r}: "of-this-test"}}
    subprocess.Popen([sys.executable, "-S", "-c", {CLUSTER!r}], env=environment, stdout=subprocess.DEVNULL)
    time.sleep(3)
    print("ready", flush=True)
    time.sleep(60)
"""
"""A marked process, and one below it that lost the mark."""


def test_what_a_killed_driver_leaves_is_ended() -> None:
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    driver = subprocess.Popen([sys.executable, "-c", DRIVER], env=environment, stdout=subprocess.PIPE, text=True)
    assert driver.stdout
    assert driver.stdout.readline() == "ready\n"
    cluster = [pid for pid, title in below(driver.pid).items() if "reaper.py" not in title]
    assert len(cluster) == 2
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    driver.stdout.close()
    end = time.monotonic() + 30
    while processes().keys() & set(cluster):
        assert time.monotonic() < end


def test_a_cluster_that_breaks_ends_the_work_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_watch, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(ray_watch, "_dead", lambda: "raylet")
    with (
        pytest.raises(WorkersLost, match=r"^Ray's raylet ended .* the same command again to go on$"),
        ray_watch.watched(),
    ):
        time.sleep(60)


STUCK = """
import signal, time
from actors import ray_watch
from orchestrator.engine.run.console import Terminal
ray_watch.LOOK_SECONDS, ray_watch.AGAIN_SECONDS, ray_watch.STUCK_SECONDS = 0.01, 0.05, 0.3
unreachable = []
ray_watch._dead = lambda: "gcs_server" if unreachable else ""
terminal = Terminal()
with terminal.quiet(), ray_watch.watched(terminal.last_words):
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})  # as in foreign code, which no interrupt ends
    unreachable.append(True)
    time.sleep(60)
"""


def test_work_that_no_interrupt_reaches_ends_with_the_same_line_and_code_3() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run([sys.executable, "-c", STUCK], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith("orch: WorkersLost: Ray's gcs_server ended unexpectedly; finished models are kept;")


def test_what_the_work_raises_passes_a_watch_over_a_whole_cluster() -> None:
    for error in (KeyboardInterrupt, ValueError, BadInput):
        with pytest.raises(error), ray_watch.watched():
            raise error("as it was")
