"""What is printed where an encoding lacks letters: plain ones, and never an error."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.engine.run.letters import PLAIN, write_what_can_be_written

SAID = "ε ≥ 0.49, AUC −.02 …"


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
@pytest.mark.parametrize(
    ("encoding", "text", "written"),
    [
        ("ascii", SAID, b"epsilon >= 0.49, AUC -.02 ..."),
        ("latin-1", "10\xa0% ± ½ é Ж", "10\xa0% ± ½ é ?".encode("latin-1")),
        ("utf-8", SAID, SAID.encode()),
        ("utf-8", "run\udcff", b"run\xff"),
        ("ascii", "run\udcff−", b"run\xff-"),
    ],
)
def test_letters_that_an_encoding_lacks_are_written_plainly(
    encoding: str, errors: str, text: str, written: bytes
) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding, errors=errors)
    write_what_can_be_written(stream)
    stream.write(text)
    stream.flush()
    assert raw.getvalue() == written


def test_plain_letters_are_plain() -> None:
    assert "".join(PLAIN.values()).isascii() and not any(letter.isascii() for letter in PLAIN)


def test_a_rule_that_a_user_asked_for_is_kept() -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="backslashreplace")
    write_what_can_be_written(stream)
    assert stream.errors == "backslashreplace"


def test_a_terminal_of_another_encoding_hears_a_result_whole(tmp_path: Path) -> None:
    rows = [f"{place % 2},{(place * 37 % 101) / 101}" for place in range(200)]
    (tmp_path / "scores.csv").write_text("member,score\n" + "\n".join(rows) + "\n", encoding="utf-8")
    command = [sys.executable, "-m", "orchestrator.cli.main", "score", "scores.csv", "--member", "member"]
    done = subprocess.run(
        [*command, "--score", "score"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).resolve().parents[4])},
    )
    assert done.returncode == 0, done.stderr
    assert b"epsilon >= " in done.stdout and b"Verdict: " in done.stdout and done.stdout.isascii()
