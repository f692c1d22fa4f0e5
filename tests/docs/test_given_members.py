"""docs/how-to/given-models.md on TMIA does what it says: the script's model, the plan and the command, made small."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from tests.cases.runs import UnshownRun
from tests.docs.commands import BLOCK, ROOT, validated

PAGE = ROOT / "docs" / "how-to" / "given-models.md"
HEAD = "## Who was in its training set"
SMALL = {
    "target.members": "0:60",
    "audit.asked": 8,
    "audit.attacks": "[tmia_posterior,label_gap]",
    "audit.reference_samples": 60,
    "audit.reconstruction.models": 2,
    "audit.bootstrap": 20,
    "split.candidates": 40,
    "split.train_size": 60,
    "split.attacker_points": 700,
    "split.filler": 200,
    "split.reference_models": 24,
    "split.null_models": 2,
    "recipe.epochs": 2,
}


@pytest.mark.long
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_page_on_tmia_runs(
    whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In short: ``test_given_models.py``, of the same page on MIA."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("orchestrator.engine.run.run.Run", UnshownRun)
    before, _, section = PAGE.read_text().partition(HEAD)
    script = next(block for language, block in BLOCK.findall(before) if language == "python")
    plan = next(block for language, block in BLOCK.findall(section) if language == "yaml")
    command = next(block for language, block in BLOCK.findall(section) if not language).split()
    assert command[:3] == ["orch", "audit", "tmia"] and len(plan.splitlines()) <= 15
    exec(script.replace("range(500)", "range(60)").replace("(500,", "(60,").replace("range(300)", "range(30)"), {})
    Path("members.yaml").write_text(plan)
    values = {**SMALL, "tracking.uri": f"sqlite:///{tmp_path}/mlflow.db"}
    changes = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    if not whole:  # its audit is not carried out
        assert main([*validated(command), *changes]) == 0
        return
    here = ["--workers", "0", "--store", str(tmp_path / "store"), *changes]
    assert main([*command[1:], *here]) == 0
    told = capsys.readouterr().out
    assert "known non-members" in told
    document = json.loads(Path("found/result.json").read_text())
    assert {cell["targets"] for cell in document["table"]} == {1} and document["own_models"]
