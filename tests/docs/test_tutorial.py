"""docs/tutorial.md in seconds: its files run, its class is a model, its plan is valid; the whole page: tests/long."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from tests.cases.tutorial import NUMBER, PAGE, blocks, is_shown, missing, script, steps, value
from tests.docs.commands import BLOCK, files_of


def test_its_files_make_a_model_that_its_plan_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files_of(PAGE).items():
        Path(name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_net", raising=False)
    for command in ("make_data.py", "train.py --epochs 1"):
        monkeypatch.setattr(sys, "argv", command.split())
        runpy.run_path(command.split()[0], run_name="__main__")
    assert len(Path("members.txt").read_text().split()) == 1000
    for line in ("check python:my_net:Net --data npz:patients.npz", "validate audit.yaml --allow-code"):
        assert any(f"orch {line}\n" in step.commands for step in steps())
        assert main(line.split()) == 0, capsys.readouterr()


@pytest.mark.needs("bash")
def test_it_is_a_script_of_bash() -> None:
    subprocess.run(["bash", "-n", "-c", script({})], check=True)
    assert sum(len(step.shown) for step in steps()) > 5


def test_its_prose_tells_no_number_that_no_block_has() -> None:
    prose = re.sub(r"`[^`]*`|\([^)]*\)", "", BLOCK.sub("", PAGE.read_text()))
    known = {value(number) for _, text in blocks() for number in NUMBER.findall(text)} | {0.5, 3.11}
    assert {value(number) for number in NUMBER.findall(prose)} <= known


def test_lines_are_compared_within_a_tolerance() -> None:
    line = "Verdict: AUC .76 [.72, .79] of 400 images; gate: …"
    assert is_shown(line, "Verdict: AUC .78 [.74,  .81] of 400 images; gate: failed")
    assert not is_shown(line, "Verdict: AUC .82 [.72, .79] of 400 images; gate: failed")
    assert not is_shown(line, "Verdict: AUC .76 [.72, .79] of 401 images; gate: failed")
    assert is_shown("−.12 *", "−.10 *") and not is_shown("−.12 *", "−.12")
    assert missing(["b", "a"], ["a", "b"]) == ["a"] and not missing(["a", "b"], ["a", "x", "b"])
