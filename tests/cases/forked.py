"""Tests in several processes: they are collected once, and forks of that process run them, file by file.

``--processes N``; with ``--part K/N`` the K-th of N parts of the files, for a suite that takes longer than one has. A
fork has all modules, fixtures and items from the start, so one more costs nothing but memory that
it changes. One that ends in a test has failed that test alone: another takes its place and goes on behind it.
"""

from __future__ import annotations

import os
import signal
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest

LEAVE_SECONDS = 30.0
"""For what a process still has to put away, when the suite is ended."""

Unit = list[int]
"""The numbers of items that one process runs, one after another."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--processes", type=int, default=0, metavar="N", help="run files of tests in N forked processes")
    parser.addoption("--part", default="1/1", metavar="K/N", help="run the K-th of N parts of the files")


def pytest_configure(config: pytest.Config) -> None:
    """Describe the marker."""
    config.addinivalue_line("markers", "together(name): one process runs all files of this name, one after another")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what belongs to other parts: files are dealt in their order, so that those of a sort spread evenly."""
    try:
        part, parts = map(int, config.getoption("part").split("/"))
    except ValueError:
        raise pytest.UsageError("--part is written K/N, as 2/3") from None
    if not 1 <= part <= parts:
        raise pytest.UsageError(f"--part {part}/{parts}: there are parts 1 to {parts}")
    files = list(dict.fromkeys(item.path for item in items))
    own = set(files[part - 1 :: parts])
    config.hook.pytest_deselected(items=[item for item in items if item.path not in own])
    items[:] = [item for item in items if item.path in own]


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run what was collected in forks, if that is asked for and all could be collected."""
    count = session.config.getoption("processes")
    if count < 1 or session.config.option.collectonly or session.testsfailed:
        return None
    Forks(session, count).run()
    return True


def units(items: Sequence[pytest.Item]) -> list[Unit]:
    """Return what one process runs: the tests of a file, or those that stand one after another and are marked so."""

    def name(number: int) -> str:
        mark = items[number].get_closest_marker("together")
        return str(mark.args[0] if mark else items[number].path)

    return [list(numbers) for _, numbers in groupby(range(len(items)), key=name)]


class Fork:
    """A process that runs units, as its parent sees it."""

    def __init__(self, number: int, pid: int, line: Connection) -> None:
        self.number, self.pid, self.line = number, pid, line
        self.left: deque[int] = deque()
        self.within: int | None = None
        """The item that it is in."""


class Forks:
    """Gives units to forks, and tells the plugins of this process what they report."""

    def __init__(self, session: pytest.Session, count: int) -> None:
        self.session, self.hook = session, session.config.hook
        self.waiting = deque(units(session.items))
        self.count = min(count, len(self.waiting))
        self.members: list[Fork] = []
        self.started = 0

    def run(self) -> None:
        """Run all items. Raises what ends a session early: Failed, Interrupted, KeyboardInterrupt, Exit."""
        reporter: Any = self.session.config.pluginmanager.get_plugin("terminalreporter")
        if reporter is not None:
            reporter.showfspath = False  # files are at work side by side
        self.session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]  # for all: forks have folders in it
        try:
            while len(self.members) < self.count:
                self.members.append(self.forked())
            while self.members:
                for line in wait([each.line for each in self.members]):
                    self.hear(next(each for each in self.members if each.line is line))
                    self.end_early()
            if self.waiting:
                raise self.session.Interrupted("no process is left, and tests are")
        finally:
            self.end_all()

    def end_early(self) -> None:
        """Raise what a plugin of this process has asked for, such as ``-x``."""
        if self.session.shouldfail:
            raise self.session.Failed(self.session.shouldfail)
        if self.session.shouldstop:
            raise self.session.Interrupted(self.session.shouldstop)

    def forked(self) -> Fork:
        """Start one process."""
        here, there = Pipe()
        number, self.started = self.started, self.started + 1
        pid = os.fork()
        if pid:
            there.close()
            return Fork(number, pid, here)
        for line in (here, *(each.line for each in self.members)):
            line.close()
        code = 1
        try:
            code = Runner(self.session, there, number).run()
        finally:
            os._exit(code)

    def hear(self, member: Fork) -> None:
        """Take one message of a member, or notice that it is gone."""
        try:
            kind, *given = member.line.recv()
        except (EOFError, OSError):
            self.lose(member)
            return
        if kind == "next":
            unit = self.waiting.popleft() if self.waiting else []
            member.left.extend(unit)
            with suppress(OSError):  # it is gone, and that is heard next
                member.line.send(unit)
        elif kind == "start":
            member.within = member.left.popleft()
            self.hook.pytest_runtest_logstart(nodeid=given[0], location=given[1])
        elif kind == "report":
            report = self.hook.pytest_report_from_serializable(config=self.session.config, data=given[0])
            self.hook.pytest_runtest_logreport(report=report)
        elif kind == "finish":
            member.within = None
            self.hook.pytest_runtest_logfinish(nodeid=given[0], location=given[1])
        elif kind == "warning":
            text, file, line, when, nodeid, location = given
            told = warnings.WarningMessage(Warning(text), Warning, file, line)
            self.hook.pytest_warning_recorded.call_historic(
                kwargs={"warning_message": told, "when": when, "nodeid": nodeid, "location": location}
            )
        else:
            name = f"process {member.number}"
            self.failed(name, (name, None, name), given[0])
            if kind == "broken":
                self.session.shouldstop = f"{name} broke"

    def lose(self, member: Fork) -> None:
        """Fail the test in which a member ended, and let another one do what it has left behind."""
        self.members.remove(member)
        member.line.close()
        code = os.waitstatus_to_exitcode(os.waitpid(member.pid, 0)[1])
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        if member.within is not None:
            item = self.session.items[member.within]
            self.failed(item.nodeid, item.location, f"process {member.number} ended in this test: {how}")
            self.hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        if member.left:
            self.waiting.appendleft(list(member.left))
        if self.waiting and (member.within is not None or member.left):
            self.members.append(self.forked())

    def failed(self, name: str, location: tuple[str, int | None, str], why: str) -> None:
        """Report a failure of which no fork could tell."""
        report = pytest.TestReport(name, location, {}, "failed", why, "call")
        self.hook.pytest_runtest_logreport(report=report)

    def end_all(self) -> None:
        """End the members that are left, in order where they can."""
        for member in self.members:
            with suppress(ProcessLookupError):
                os.kill(member.pid, signal.SIGTERM)
        until = time.monotonic() + LEAVE_SECONDS
        while self.members and time.monotonic() < until:
            for line in wait([each.line for each in self.members], timeout=0.5):
                member = next(each for each in self.members if each.line is line)
                said = b""
                with suppress(ConnectionResetError):
                    said = os.read(member.line.fileno(), 2**16)
                if not said:  # what it still says is of no use, nor whole
                    self.members.remove(member)
                    os.waitpid(member.pid, 0)
        for member in self.members:
            os.kill(member.pid, signal.SIGKILL)
            os.waitpid(member.pid, 0)


class Between:
    """What comes behind the last item of a unit, as far as pytest and hooks ask: nobody knows yet which unit does."""

    path = Path(os.devnull)

    def __init__(self, session: pytest.Session) -> None:
        self.session = session

    def listchain(self) -> list[pytest.Session]:
        """Return what is kept."""
        return [self.session]


class Runner:
    """Runs units in a fork, and tells its parent what the plugins are told."""

    def __init__(self, session: pytest.Session, line: Connection, number: int) -> None:
        self.session, self.line, self.ended = session, line, False
        signal.signal(signal.SIGTERM, self.end)
        plugins = session.config.pluginmanager
        if plugins.has_plugin("terminalreporter"):
            plugins.unregister(name="terminalreporter")
        plugins.register(self)
        capture: Any = plugins.get_plugin("capturemanager")
        capture.stop_global_capturing()  # its files are the parent's
        capture.start_global_capturing()
        capture.suspend_global_capture()
        factory = session.config._tmp_path_factory  # type: ignore[attr-defined]
        factory._basetemp = factory.getbasetemp() / f"process{number}"
        factory._basetemp.mkdir()

    def run(self) -> int:
        """Run units until there are none, or the suite is ended; return the exit code."""
        try:
            for unit in self.asked():
                self.run_unit(unit)
        except (KeyboardInterrupt, pytest.exit.Exception):
            pass
        except BaseException:
            self.line.send(("broken", traceback.format_exc()))
        try:
            self.session._setupstate.teardown_exact(None)
        except BaseException:
            self.line.send(("teardown", traceback.format_exc()))
        return 0

    def end(self, *_: object) -> None:
        """Run no further test; the one that runs may swallow what is raised."""
        self.ended = True
        raise pytest.exit.Exception("the suite is ended")

    def asked(self) -> Iterator[Unit]:
        """Yield units as the parent gives them."""
        while not self.ended:
            self.line.send(("next",))
            unit = self.line.recv()
            if not unit:
                return
            yield unit

    def run_unit(self, unit: Unit) -> None:
        """Run the items of a unit; behind the last all is put away but what belongs to the whole session."""
        items, between = self.session.items, Between(self.session)
        for number, after in zip(unit, [*(items[each] for each in unit[1:]), between], strict=True):
            if self.ended:
                return
            self.session.config.hook.pytest_runtest_protocol(item=items[number], nextitem=after)

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Tell that a test starts."""
        self.line.send(("start", nodeid, location))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        """Tell that a test has ended."""
        self.line.send(("finish", nodeid, location))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell how a part of a test went."""
        data = self.session.config.hook.pytest_report_to_serializable(config=self.session.config, report=report)
        self.line.send(("report", data))

    def pytest_warning_recorded(
        self, warning_message: warnings.WarningMessage, when: str, nodeid: str, location: Any
    ) -> None:
        """Tell of a warning that the parent has not heard itself."""
        if when == "runtest":
            text = f"{warning_message.category.__name__}: {warning_message.message}"
            place = warning_message.filename, warning_message.lineno
            self.line.send(("warning", text, *place, when, nodeid, location))


def shared(work: Sequence[Any], count: int, do: Callable[[Sequence[Any]], None]) -> None:
    """Do ``work`` in ``count`` forks, a share in each."""
    pids = []
    for number in range(count):
        pid = os.fork()
        if not pid:
            try:
                do(work[number::count])
            finally:
                os._exit(0)
        pids.append(pid)
    for pid in pids:
        os.waitpid(pid, 0)
