"""What reaches the user's screen, in a pipe and with the descriptors redirected."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from audits.own.libraries import working_folder_elsewhere
from orchestrator.engine.durations import seconds
from orchestrator.engine.run.console import Terminal


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_pipe_gets_plain_lines_at_the_start_every_tenth_and_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Terminal(clock=clock).stage("train", 200) as advance:
        for done in range(201):
            clock.now = done / 10
            advance(done)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "train: 200 to do"
    assert lines[1] == "train: 20 of 200 (10%), 2.0 s gone, about 18 s left"
    assert lines[-1] == "train: done, 200 of 200 in 20 s"
    assert len(lines) == 1 + 9 + 1
    assert not any("\x1b" in line or "\r" in line for line in lines)


def test_a_slow_stage_speaks_every_ten_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Terminal(clock=clock).stage("search", 1000) as advance:
        for done in (1, 2, 3, 4):
            clock.now += 6.0
            advance(done)
    shares = [line.split()[1] for line in capsys.readouterr().out.splitlines()[1:-1]]
    assert shares == ["2", "4"]


def test_steps_that_are_not_alike_tell_no_time_that_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    with Terminal(clock=clock).stage("summing up", 3, alike=False) as advance:
        for done in (1, 2, 3):
            clock.now += 10 * done
            advance(done)
    assert capsys.readouterr().out.splitlines()[1:3] == [
        "summing up: 1 of 3 (33%), 10 s gone",
        "summing up: 2 of 3 (67%), 30 s gone",
    ]


def test_a_failing_stage_says_how_far_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    def work() -> None:
        with Terminal(clock=Clock()).stage("train", 5) as advance:
            advance(2)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        work()
    assert capsys.readouterr().out.splitlines()[-1] == "train: stopped at 2 of 5 after 0.0 s"


def test_the_total_may_change_on_the_way(capsys: pytest.CaptureFixture[str]) -> None:
    with Terminal(clock=Clock()).stage("train", 5) as advance:
        advance(8, 8)
    assert capsys.readouterr().out.splitlines()[-1].startswith("train: done, 8 of 8")


def test_with_json_people_are_spoken_to_on_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(json=True)
    terminal.line("hello [bold]you[/bold]")
    with terminal.quiet():
        terminal.line("again")
    seen = capfd.readouterr()
    assert seen.out == ""
    assert seen.err == "hello [bold]you[/bold]\nagain\n"


SCRIPT = """
import os, subprocess, sys
from pathlib import Path
from orchestrator.engine.run.console import Terminal
terminal = Terminal(Path(sys.argv[1]))
print("before")
try:
    with terminal.quiet():
        print("python")
        os.write(2, b"descriptor\\n")
        subprocess.run([sys.executable, "-c", "print('child')"], check=True)
        terminal.line("to the user")
        with terminal.quiet():
            print("nested")
        with terminal.stage("train", 1) as advance:
            advance(1)
        print("still quiet")
        raise KeyError("x")
except KeyError:
    pass
print("after")
os.write(2, b"error again\\n")
"""


def test_quiet_sends_everybody_elses_words_to_the_log_and_restores_the_screen(tmp_path: Path) -> None:
    log = tmp_path / "orch.log"
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(log)], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[:3] == ["before", "to the user", "train: 1 to do"]
    assert lines[3].startswith("train: done, 1 of 1")
    assert lines[4:] == ["after"]
    assert done.stderr == "error again\n"
    assert set(log.read_text().splitlines()) == {"python", "descriptor", "child", "nested", "still quiet"}


def test_quiet_leaves_no_open_descriptors_behind(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal(tmp_path / "orch.log")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pytest.raises(ValueError, match="x"), terminal.quiet():
            raise ValueError("x")
    assert len(os.listdir("/proc/self/fd")) == before


def test_on_a_terminal_there_is_one_live_bar_and_one_last_line(tmp_path: Path) -> None:
    script = "\n".join(
        [
            "import os, sys",
            "from pathlib import Path",
            "from orchestrator.engine.run.console import Terminal",
            "terminal = Terminal(Path(sys.argv[1]))",
            "with terminal.stage('train', 3) as advance:",
            "    with terminal.quiet():",
            "        for done in range(4): advance(done); print('chatter')",
        ]
    )
    parent, child = os.openpty()
    command = [sys.executable, "-c", script, str(tmp_path / "log")]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    subprocess.run(command, stdout=child, stderr=child, check=True, env=environment)
    os.close(child)
    screen = os.read(parent, 100_000).decode()
    os.close(parent)
    assert "chatter" not in screen
    assert "3/3" in screen
    assert "train: done, 3 of 3" in screen


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.04, "0.0 s"), (9.96, "10 s"), (59.4, "59 s"), (59.6, "1 min 00 s"), (3725, "1 h 02 min")],
)
def test_durations_read_as_people_say_them(value: float, text: str) -> None:
    assert seconds(value) == text


def test_what_libraries_print_is_logged_while_another_thread_has_the_working_folder_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    terminal = Terminal(Path("orch.log"))
    with working_folder_elsewhere(), terminal.quiet():
        os.write(1, b"noise\n")
    assert (tmp_path / "orch.log").read_text() == "noise\n"
