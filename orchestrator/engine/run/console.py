"""The terminal of a run: one live bar per stage, plain lines in a pipe, and nobody else's chatter."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from textwrap import wrap
from typing import IO, Protocol, cast

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from audits.writing import opened_to_append
from orchestrator.engine.durations import seconds
from orchestrator.engine.media import terminal, visible
from orchestrator.engine.run.streams import PLAIN_LETTERS, unless_gone

PIPE_WIDTH = 160  # columns of a table where no terminal says how wide it is
LINE_EVERY = 10.0  # seconds after which a pipe hears of progress
LINE_SHARE = 0.1  # share of a stage after which a pipe hears of progress
LINE_GAP = 1.0  # seconds between two lines at the least


class Advance(Protocol):
    """Say how far a stage is; a new ``total`` replaces the one it began with."""

    def __call__(self, done: int, total: int | None = None) -> None: ...


class Outlet:
    """A text stream that follows the user's screen: ``sys.stdout`` or ``sys.stderr``, or its duplicate while quiet."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.duplicate: IO[str] | None = None

    @property
    def stream(self) -> IO[str]:
        """The stream to write to now (looked up each time, so that a replaced ``sys.stdout`` is honoured)."""
        return self.duplicate or (sys.stdout if self.descriptor == 1 else sys.stderr)

    def write(self, text: str) -> int:
        """Write ``text`` to the screen; to a terminal that is gone nothing."""
        with unless_gone():
            self.stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream in use."""
        with unless_gone():
            self.stream.flush()

    def isatty(self) -> bool:
        """Say whether a person is looking."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """Return the descriptor of the stream in use."""
        return self.stream.fileno()

    @property
    def encoding(self) -> str:
        """The encoding of the stream in use."""
        return getattr(self.stream, "encoding", None) or "utf-8"

    def is_real(self) -> bool:
        """Say whether the stream writes to its own descriptor, so that redirecting that would move it."""
        try:
            return self.stream.fileno() == self.descriptor
        except (OSError, ValueError, AttributeError):
            return False


class Screen(Console):
    """A console that leaves it to its user what becomes of a closed pipe: by itself it would exit with 1."""

    def on_broken_pipe(self) -> None:
        """Let the error pass."""
        raise BrokenPipeError


class Terminal:
    """Where a run speaks to the user: standard output, or standard error when standard output belongs to JSON.

    ``log``: file that takes what other libraries print during ``quiet()`` (None: it is thrown away). ``terse``: only
    closing lines are printed, no progress and no table. ``clock`` returns seconds.
    """

    def __init__(
        self,
        log: Path | None = None,
        json: bool = False,
        terse: bool = False,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.log = log
        self.file = log and log.absolute()  # opened while another thread may have the working folder elsewhere
        self.json = json
        self.terse = terse
        self.clock = clock
        self.outlet = Outlet(2 if json else 1)
        self.depth = 0
        self.errors = 2
        stream = cast(IO[str], self.outlet)
        width = None if self.outlet.isatty() else int(os.environ.get("COLUMNS", PIPE_WIDTH))
        self.console = Screen(file=stream, width=width, highlight=False, soft_wrap=False)

    def line(self, text: str) -> None:
        """Print one line of plain text, unless only closing lines are wanted."""
        if not self.terse:
            self.closing(text)

    def closing(self, text: str) -> None:
        """Print one line of plain text with which a command ends; a terminal shows it broken between words."""
        text = terminal(text)
        if self.console.is_terminal:
            text = "\n".join(wrap(text, self.console.width, break_long_words=False, break_on_hyphens=False))
        self.console.print(text, markup=False, emoji=False, soft_wrap=True)

    def with_command(self, text: str) -> None:
        """Print a line that holds a command, unless only closing lines are wanted; it is whole, to be copied."""
        if not self.terse:
            self.console.print(visible(text), markup=False, emoji=False, soft_wrap=True)

    def last_words(self, text: str) -> None:
        """Print a line on standard error, whoever holds it, as the last one before the process ends."""
        os.write(self.errors, f"orch: {terminal(text)}{f' (log: {self.log})' if self.log else ''}\n".encode())

    def table(self, renderable: RenderableType) -> None:
        """Print a rich table (or anything else that rich can draw), unless only closing lines are wanted."""
        if not self.terse:
            self.console.print(renderable)

    @contextmanager
    def stage(self, title: str, total: int, *, alike: bool = True) -> Iterator[Advance]:
        """Show the progress of a stage of ``total`` steps; yields ``advance(done, total=None)``.

        ``alike``: steps take about as long as each other, so that the time that is left can be told.

        Ends with one line that says how long it took, also when the stage fails.
        """
        begin = self.clock()
        shown = Lines(self, title, total, begin, alike)
        try:
            if self.console.is_terminal and not self.terse:
                with self.bar(title, shown) as advance:
                    yield advance
            else:
                shown.start()
                yield shown.advance
        except BaseException:
            self.line(f"{title}: stopped at {shown.done} of {shown.total} after {seconds(self.clock() - begin)}")
            raise
        self.line(f"{title}: done, {shown.done} of {shown.total} in {seconds(self.clock() - begin)}")

    @contextmanager
    def bar(self, title: str, state: Lines) -> Iterator[Advance]:
        """Show a live bar with the time that is left; it disappears at the end."""
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        progress = Progress(
            *columns,
            *([TimeRemainingColumn()] if state.alike else []),
            console=self.console,
            transient=True,
            redirect_stdout=False,  # rich would put itself where the outlet looks for the screen
            redirect_stderr=False,
        )
        with progress:
            task = progress.add_task(escape(terminal(title)), total=state.total)

            def advance(done: int, total: int | None = None) -> None:
                state.done, state.total = done, state.total if total is None else total
                progress.update(task, completed=done, total=state.total)

            yield advance

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Send everything that is printed meanwhile, by any library or child process, to the log file.

        Works on the descriptors 1 and 2; the terminal itself keeps speaking through a duplicate. May be nested;
        everything is restored at the end, also after an exception.
        """
        if self.depth:
            self.depth += 1
            try:
                yield
            finally:
                self.depth -= 1
            return
        flush_streams()
        target = opened_to_append(self.file) if self.file else os.open(os.devnull, os.O_WRONLY)
        kept = (os.dup(1), os.dup(2))
        if self.outlet.is_real():
            own = os.dup(self.outlet.descriptor)
            self.outlet.duplicate = open(own, "w", encoding=self.outlet.encoding, errors=PLAIN_LETTERS, buffering=1)  # noqa: SIM115 - closed below
        self.depth, self.errors = 1, kept[1]
        try:
            os.dup2(target, 1)
            os.dup2(target, 2)
            yield
        finally:
            flush_streams()
            os.dup2(kept[0], 1)
            os.dup2(kept[1], 2)
            for descriptor in (*kept, target):
                os.close(descriptor)
            duplicate, self.outlet.duplicate = self.outlet.duplicate, None
            self.depth, self.errors = 0, 2
            if duplicate is not None:
                with unless_gone():
                    duplicate.close()


class Lines:
    """Progress as plain lines: at the start, then after each tenth of the stage or ten seconds, a second apart."""

    def __init__(self, terminal: Terminal, title: str, total: int, begin: float, alike: bool = True) -> None:
        self.terminal, self.title, self.total, self.begin, self.alike = terminal, title, total, begin, alike
        self.done = 0
        self.said_at, self.said_share = begin, 0.0
        self.first: tuple[float, int] | None = None  # when the first step was done, and how many were done then

    def start(self) -> None:
        """Say that the stage begins."""
        self.terminal.line(f"{self.title}: {self.total} to do")

    def advance(self, done: int, total: int | None = None) -> None:
        """Say how far the stage is, if it is time to say so (never at the end: the stage says that itself)."""
        self.done, self.total = done, self.total if total is None else total
        now, share = self.terminal.clock(), done / self.total if self.total else 1.0
        if done > 0 and self.first is None:
            self.first = (now, done)
        waited = now - self.said_at
        due = waited >= LINE_EVERY or (waited >= LINE_GAP and share - self.said_share >= LINE_SHARE - 1e-9)
        if not due or done >= self.total or done <= 0:
            return
        self.said_at, self.said_share = now, share
        text = f"{self.title}: {done} of {self.total} ({share:.0%}), {seconds(now - self.begin)} gone"
        left = self.left(now, done)
        self.terminal.line(text if left is None else f"{text}, about {seconds(left)} left")

    def left(self, now: float, done: int) -> float | None:
        """Return the seconds that are left at the pace since the first step (starting workers is no step)."""
        if not self.alike or self.first is None or done <= self.first[1]:
            return None
        return (now - self.first[0]) / (done - self.first[1]) * (self.total - done)


def flush_streams() -> None:
    """Flush Python's own buffers, so that nothing changes sides with a descriptor."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not stream.closed:
            with unless_gone():
                stream.flush()
