"""Where the seconds of the suite go: its ten slowest tests and its slowest folders stand at the end of the run.

CPU seconds are of the process that ran the test and of those that it started and waited for; a cluster's own are not
among them. All tests are in ``.pytest_cache/v/orch/seconds``, with both.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator, Mapping
from typing import Any

import pytest

SLOWEST = 10
SHOWN_FROM = 1.0
"""Seconds; what takes less is not listed."""
CACHED = "orch/seconds"

Seconds = tuple[float, float]
"""On the clock and of the CPU."""


class Clock:
    """Adds up the seconds of each test: setup, call and teardown."""

    def __init__(self) -> None:
        self.tests: dict[str, Seconds] = {}
        self.before = cpu_seconds()
        self.process = os.getpid()

    def pytest_collection_finish(self) -> None:
        """Count from here: what is imported until all tests are collected is of none of them."""
        self.before = cpu_seconds()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let a report carry the CPU seconds since the last one."""
        report = yield
        now, process = cpu_seconds(), os.getpid()
        report.cpu = now - (self.before if process == self.process else 0.0)  # type: ignore[attr-defined]
        self.before, self.process = now, process
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a report; the process that prints the summary hears of all."""
        self.tests[report.nodeid] = added(
            self.tests.get(report.nodeid, (0.0, 0.0)), (report.duration, getattr(report, "cpu", 0.0))
        )

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the slowest, and keep all."""
        cache = getattr(terminalreporter.config, "cache", None)
        if cache is not None:
            cache.set(CACHED, {**cache.get(CACHED, {}), **self.tests})
        for title, seconds in (("slowest tests", self.tests), ("slowest folders", by_folder(self.tests))):
            if lines := slowest(seconds):
                terminalreporter.section(f"{title}: seconds, and those of the CPU")
                for line in lines:
                    terminalreporter.write_line(line)


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its processes that have ended."""
    return sum(os.times()[:4])


def added(one: Seconds, other: Seconds) -> Seconds:
    """Return the sum of both."""
    return one[0] + other[0], one[1] + other[1]


def by_folder(tests: Mapping[str, Seconds]) -> dict[str, Seconds]:
    """Return the seconds of each folder that holds test files."""
    folders: dict[str, Seconds] = defaultdict(lambda: (0.0, 0.0))
    for name, seconds in tests.items():
        folder = os.path.dirname(name.partition("::")[0]) or "."
        folders[folder] = added(folders[folder], seconds)
    return dict(folders)


def slowest(seconds: Mapping[str, Seconds]) -> list[str]:
    """Return a line for each of the slowest."""
    listed = sorted(((s, name) for name, s in seconds.items() if s[0] >= SHOWN_FROM), reverse=True)[:SLOWEST]
    return [f"{clock:7.1f} {cpu:7.1f}  {name}" for (clock, cpu), name in listed]


def pytest_configure(config: pytest.Config) -> None:
    """Watch the clock."""
    config.pluginmanager.register(Clock())
