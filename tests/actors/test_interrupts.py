"""Ctrl-C ends nothing halfway where it is held back, and is not lost there."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from actors.interrupts import interrupt_held

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def as_on_a_terminal() -> Iterator[None]:
    """Let Ctrl-C be what it is in a program that was not started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(times: int, done: list[int]) -> None:
    """Work while Ctrl-C comes ``times``; ``done`` are those that did not end it."""
    with interrupt_held():
        for number in range(times):
            signal.raise_signal(signal.SIGINT)
            done.append(number)
        time.sleep(0.1)
        done.append(-1)


def test_a_held_interrupt_is_raised_after_the_block() -> None:
    done: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        interrupted(1, done)
    assert done == [0, -1]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_is_not_held() -> None:
    done: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        interrupted(2, done)
    assert -1 not in done


def test_an_interrupt_that_is_ignored_stays_ignored() -> None:
    done: list[int] = []
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    interrupted(2, done)
    assert done == [0, 1, -1]


def test_elsewhere_than_in_the_main_thread_nothing_is_held() -> None:
    seen = []

    def work() -> None:
        with interrupt_held():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


SCRIPT = """
import os, signal, sys, time
import actors.interrupts as interrupts
signal.signal(signal.SIGINT, {sigint})
signal.signal(signal.SIGHUP, {sighup})
interrupts.end_as_by_ctrl_c()
child = os.fork()
if not child:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
with interrupts.endings_kept():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))  # as Ray does
try:
    with interrupts.interrupt_held():
        os.kill(os.getpid(), signal.{number})
        print("held", end=" ")
    time.sleep(0.1)
    print("goes on", end=" ")
except KeyboardInterrupt:
    print(interrupts.told_to_end(), end=" ")
sys.stdout.flush()
os._exit(interrupts.exit_code())
"""


@pytest.mark.parametrize(
    ("number", "sigint", "sighup", "said", "code"),
    [
        ("SIGTERM", "signal.default_int_handler", "signal.SIG_DFL", "held True", 143),
        ("SIGHUP", "signal.default_int_handler", "signal.SIG_DFL", "held True", 129),
        ("SIGINT", "signal.default_int_handler", "signal.SIG_DFL", "held False", 130),
        ("SIGHUP", "signal.default_int_handler", "signal.SIG_IGN", "held goes on", 130),
        ("SIGTERM", "signal.SIG_IGN", "signal.SIG_DFL", "True", 143),
    ],
)
def test_a_process_that_is_told_to_end_is_interrupted_and_says_by_what(
    number: str, sigint: str, sighup: str, said: str, code: int
) -> None:
    script = SCRIPT.format(number=number, sigint=sigint, sighup=sighup)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.stdout.strip(), done.stderr, done.returncode) == (said, "", code)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_that_python_cannot_raise_comes_again(number: signal.Signals) -> None:
    script = """
import os, signal, sys, time, weakref
from actors.interrupts import end_as_by_ctrl_c
class Thing: pass
def struck(_): os.kill(os.getpid(), int(sys.argv[1]))
signal.signal(signal.SIGINT, signal.default_int_handler)
end_as_by_ctrl_c()
thing = Thing()
watch = weakref.ref(thing, struck)
try:
    del thing
    time.sleep(30)
    print("lost")
except KeyboardInterrupt:
    print("raised")
"""
    command = [sys.executable, "-c", script, str(int(number))]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert (done.stdout, done.stderr) == ("raised\n", "")


@pytest.mark.long
@pytest.mark.cluster
def test_a_driver_of_ray_that_is_told_to_end_does_so_in_order() -> None:
    """In short: ``test_working_folder.py``, of a driver with a worker."""
    script = """
import os, signal, sys, time
from actors.cluster import connect
from actors.interrupts import end_as_by_ctrl_c, exit_code
from actors.jobs import Workers
end_as_by_ctrl_c()
try:
    with connect(Workers(1, storage=sys.argv[1])):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(60)
except KeyboardInterrupt:
    print("in order", flush=True)
    os._exit(exit_code())
"""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", script, folder]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
        assert (done.stdout, done.returncode) == ("in order\n", 143), done.stderr
