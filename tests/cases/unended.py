"""What a suite that is ended from outside, or a test that never ends, still tells.

A summary comes only at the end; a suite that hangs is killed before it. So failures are shown when they happen,
SIGTERM ends the suite by its summary and names what was running, and a test that not even its timeout can end (it
waits in C code, or swallows what the timeout raises) shows where it stands and ends its process.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

GRACE_SECONDS = 60.0
"""How long after its timeout a test that has not ended ends its process."""


class Told:
    """Shows failures at once, and upon SIGTERM what was running; for the process that prints the summary."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.since: dict[str, float] = {}
        self.before: Any = None

    def pytest_sessionstart(self) -> None:
        """Take SIGTERM."""
        self.before = signal.signal(signal.SIGTERM, self.ended)

    def pytest_unconfigure(self) -> None:
        """Give SIGTERM back."""
        if self.before is not None:
            signal.signal(signal.SIGTERM, self.before)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Remember what runs."""
        self.since[nodeid] = time.monotonic()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Forget what has ended."""
        self.since.pop(nodeid, None)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Show a failure."""
        terminal: Any = self.config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:  # a fork has none
            terminal.ensure_newline()
            terminal.write_line(f"FAILED ({report.when}) {report.nodeid}")
            terminal.write_line(report.longreprtext)
            terminal.flush()  # what reads it may be no terminal

    def ended(self, *_: Any) -> None:
        """End the suite by its summary."""
        now = time.monotonic()
        running = [f"{name} (since {now - since:.0f} s)" for name, since in self.since.items()]
        pytest.exit(f"SIGTERM; running: {', '.join(running) or 'nothing'}", returncode=143)


class Bounded:
    """Ends the process of a test that outlasts its timeout by a minute, and shows every thread of it."""

    def __init__(self, config: pytest.Config) -> None:
        captured: Any = config.pluginmanager.get_plugin("capturemanager")
        with captured.global_and_fixture_disabled():
            self.shown_on = os.dup(2)
        self.limit = float(config.getini("timeout"))
        self.grace = float(os.environ.get("ORCH_TEST_GRACE", GRACE_SECONDS))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Set the limit of a test."""
        mark = item.get_closest_marker("timeout")
        seconds = float(mark.args[0]) if mark else self.limit
        faulthandler.dump_traceback_later(seconds + self.grace, exit=True, file=self.shown_on)
        try:
            return (yield)
        finally:
            faulthandler.cancel_dump_traceback_later()


def pytest_configure(config: pytest.Config) -> None:
    """Add both."""
    config.pluginmanager.register(Bounded(config))
    config.pluginmanager.register(Told(config))
