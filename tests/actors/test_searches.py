"""Searches by Ray Tune: what the steering asks for is run, a trial ends where it says, failures and Ctrl-C arrive."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from actors.jobs import Workers
from actors.searches import Report, run_search
from tests.actors.file_jobs import OddError


@dataclass
class Steps:
    """Asks for numbered trials and ends some of them at their first report."""

    total: int
    ends: dict[int, int]
    """Number of a trial → step at which it ends."""
    heard: list[tuple[int, int]] = field(default_factory=list)
    failures: dict[int, Exception] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)
    running: set[int] = field(default_factory=set)
    most: int = 0
    break_at: int = -1

    def ask(self) -> dict[str, Any] | None:
        if len(self.asked) == self.total:
            return None
        self.asked.append(len(self.asked))
        self.running.add(self.asked[-1])
        self.most = max(self.most, len(self.running))
        return {"number": self.asked[-1]}

    def hear(self, number: int, report: Report) -> bool:
        if number == self.break_at:
            raise OddError(number, "in the driver")
        self.heard.append((number, report["step"]))
        ended = bool(report["step"] == self.ends.get(number, 2))
        self.running -= {number} if ended else set()
        return ended

    def failed(self, number: int, error: Exception) -> None:
        self.failures[number] = error
        self.running.discard(number)


def climb(folder: Path, driver: int, config: dict[str, Any]) -> Iterator[Report]:
    """Note each step of a trial; the second one fails, the last one interrupts the driver if it is asked to."""
    for step in (1, 2):
        (folder / f"{config['number']}.{step}").open("a").write("x")
        if config["number"] == 1:
            raise FileNotFoundError(2, "gone", "/x")
        if config["number"] == 3 and (folder / "interrupt").exists():
            (folder / "interrupt").unlink()
            os.kill(driver, signal.SIGINT)
            threading.Event().wait()
        yield {"step": step}


@pytest.mark.parametrize(
    "count",
    [0, *(pytest.param(count, marks=[pytest.mark.cluster, pytest.mark.long]) for count in (1, 2))],
)
def test_trials_end_where_the_steering_says_and_one_that_fails_stops_no_other(
    tmp_path: Path, count: int, request: pytest.FixtureRequest
) -> None:
    workers: Workers = request.getfixturevalue("cluster") if count else Workers(0)
    steering = Steps(4, {2: 1})
    run_search(steering, partial(climb, tmp_path, 0), workers, count, name="climb")
    assert steering.asked == [0, 1, 2, 3] and not steering.running and steering.most <= max(count, 1)
    assert sorted(steering.heard) == [(0, 1), (0, 2), (2, 1), (3, 1), (3, 2)]
    assert {number: type(error) for number, error in steering.failures.items()} == {1: FileNotFoundError}
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == dict.fromkeys(
        ["0.1", "0.2", "1.1", "2.1", "3.1", "3.2"], "x"
    )


@pytest.mark.cluster
@pytest.mark.long
def test_an_interrupt_and_an_error_in_the_driver_end_a_search(tmp_path: Path, cluster: Workers) -> None:
    (tmp_path / "interrupt").touch()
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_search(Steps(5, {}), partial(climb, tmp_path, os.getpid()), cluster, 1, name="climb")
    assert signal.getsignal(signal.SIGINT) is before
    assert not (tmp_path / "4.1").exists()
    steering = Steps(4, {}, break_at=2)
    with pytest.raises(OddError, match="odd 2: in the driver"):
        run_search(steering, partial(climb, tmp_path, 0), cluster, 1, name="climb")
    assert steering.asked == [0, 1, 2]
