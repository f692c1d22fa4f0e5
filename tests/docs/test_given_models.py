"""docs/given-models.md does what it says: its script, its plan and its commands, one after the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from tests.cases.runs import UnshownRun
from tests.docs.commands import BLOCK, ROOT, in_blocks

PAGE = ROOT / "docs" / "given-models.md"


def test_the_page_on_gnq_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("orchestrator.engine.run.run.Run", UnshownRun)
    blocks = BLOCK.findall(PAGE.read_text())
    script = next(block for language, block in blocks if language == "python")
    plan = next(block for language, block in blocks if language == "yaml")
    assert len(plan.splitlines()) <= 15
    exec(script.replace("range(500)", "range(60)").replace("(500,", "(60,").replace("range(300)", "range(30)"), {})
    Path("mine.yaml").write_text(plan.replace("0:500", "0:60"))
    here = [
        "--workers",
        "0",
        "--store",
        str(tmp_path / "store"),
        "--set",
        f"tracking.uri=sqlite:///{tmp_path}/mlflow.db",
    ]
    first, second, *_ = (list(command.words[1:]) for command in in_blocks(PAGE))
    assert main([*first, *here]) == 0
    told = capsys.readouterr().out
    assert "Of 60 training points" in told and "Scope: One model" in told
    again = [word.replace("0:500", "0:60") for word in second]
    assert main([*again, *here, "--json"]) in (0, 1)
    document, told = json.loads(Path("exposure/result.json").read_text()), json.loads(capsys.readouterr().out)
    assert document["table"] == told["table"] and document["targets"] == told["targets"]
