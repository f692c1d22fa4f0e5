"""docs/how-to/given-models.md does what it says: its script, its plan and its commands, one after the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from tests.cases.runs import UnshownRun
from tests.docs.commands import BLOCK, ROOT, in_blocks, validated

PAGE = ROOT / "docs" / "how-to" / "given-models.md"


def section(heading: str, place: Path) -> Path:
    """Return a page, in ``place``, with the one section of the whole page of which the heading ends so."""
    (found,) = (part for part in PAGE.read_text().split("\n## ") if part.splitlines()[0].endswith(heading))
    page = place / "section.md"
    page.write_text(found)
    return page


@pytest.mark.long
def test_the_page_on_gnq_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In short: the page on MIA, below, and ``tests/orchestrator/test_api.py``."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("orchestrator.engine.run.run.Run", UnshownRun)
    page = section("`orch audit gnq`", tmp_path)
    blocks = BLOCK.findall(page.read_text())
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
    first, second = (list(command.words[1:]) for command in in_blocks(page))
    assert main([*first, *here]) == 0
    told = capsys.readouterr().out
    assert "Verdict: " in told and "60 of 60 (" in told
    again = [word.replace("0:500", "0:60") for word in second]
    assert main([*again, *here, "--json"]) in (0, 1)
    document, told = json.loads(Path("exposure/result.json").read_text()), json.loads(capsys.readouterr().out)
    assert document["table"] == told["table"] and document["targets"] == told["targets"]


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_page_on_mia_runs(
    whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("orchestrator.engine.run.run.Run", UnshownRun)
    script = BLOCK.findall(section("`orch audit gnq`", tmp_path).read_text())[0][1]
    exec(script.replace("range(500)", "range(60)").replace("(500,", "(60,").replace("range(300)", "range(30)"), {})
    page = section("`orch audit mia`", tmp_path)
    (plan,) = (block for language, block in BLOCK.findall(page.read_text()) if language == "yaml")
    assert len(plan.splitlines()) <= 15
    small = ["audit.fpr=[0.2]", "audit.attacks=[rmia, loss]", "recipe.epochs=2", "split.test=100", "split.shadows=6"]
    Path("who.yaml").write_text(plan.replace("0:500", "0:60"))
    here = [word for change in (*small, f"tracking.uri=sqlite:///{tmp_path}/mlflow.db") for word in ("--set", change)]
    here += ["--workers", "0", "--store", str(tmp_path / "store")]
    first, second = (list(command.words[1:]) for command in in_blocks(page))
    if not whole:  # its audits are not carried out
        assert main([*validated(["orch", *first]), *(word for change in small for word in ("--set", change))]) == 0
        return
    assert main([*first, *here]) == 0
    assert "Scope: One given model was audited" in capsys.readouterr().out
    document = json.loads(Path("members/result.json").read_text())
    assert document["own"] and document["blind"] and document["table"][0]["targets"] == 1
    again = [word.replace("0:500", "0:60") for word in second]
    assert main([*again, *here, "--out", "again"]) in (0, 1)
    assert json.loads(Path("again/result.json").read_text())["plan"]["target"]["members"] == "0:60"
