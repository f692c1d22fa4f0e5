"""docs/how-to/given-models.md on Apollo does what it says: its script, its plan and its command, in small."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from tests.cases.runs import UnshownRun
from tests.docs.commands import BLOCK, validated
from tests.docs.test_given_models import PAGE

SMALLER = (
    "split.shadows=4",
    "split.offline_shadows=2",
    "split.shadow_pool=400",
    "split.test_pool=100",
    "audit.attacks=[single_query]",
    "audit.fpr=[0.4]",
    "audit.search.steps=1",
    "recipe.epochs=2",
    "unlearning.0.epochs=1",
)


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.long)])
def test_the_page_on_apollo_runs(
    whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("orchestrator.engine.run.run.Run", UnshownRun)
    section = PAGE.read_text().partition("## Was it forgotten")[2].partition("\n## ")[0]
    (_, script), (_, plan), (_, command) = BLOCK.findall(section)
    assert len(plan.splitlines()) <= 15
    exec(script.replace("1000", "100").replace("200", "25").replace("=30", "=3").replace("=5", "=1"), {})
    Path("unlearned.yaml").write_text(plan.replace("1000", "100").replace("200", "25"))
    here = ["--workers", "0", "--store", str(tmp_path / "store")]
    changes = [
        part for change in (*SMALLER, f"tracking.uri=sqlite:///{tmp_path}/mlflow.db") for part in ("--set", change)
    ]
    if not whole:  # such an audit is one of the finished runs of all tests
        assert main([*validated(command.split()), *changes]) == 0
        return
    assert main([*command.split()[1:], *here, *changes]) == 0
    assert "One given model" in capsys.readouterr().out
    document = json.loads(Path("forgotten/result.json").read_text())
    assert {row["unlearner"] for row in document["table"]} == {"identity", "finetune", "retrain"}
    assert next(row for row in document["utility"] if row["unlearner"] == "finetune")["distance"] > 0
