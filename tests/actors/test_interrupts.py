"""Ctrl-C ends nothing halfway where it is held back, and is not lost there."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from actors.interrupts import interrupt_held


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
