"""docs/how-to/deletion-request.md does what it says: its script, its plan and its command, in small."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from tests.cases.runs import UnshownRun
from tests.docs.commands import BLOCK
from tests.docs.test_given_apollo import SMALLER

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "deletion-request.md"
SIZES = {"range(1000)": "range(100)", "range(100, 1000)": "range(25, 100)", "=30": "=3", "=5": "=1"}


@pytest.mark.long
def test_the_page_runs_and_leaves_what_is_to_be_filed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In short: ``test_commands.py``, of all commands of all pages."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("orchestrator.engine.run.run.Run", UnshownRun)
    blocks = [text for _, text in BLOCK.findall(PAGE.read_text())]
    script, plan, commands = blocks[:3]
    script = script.replace('"deleted": range(100)', '"deleted": range(25)')
    for old, new in SIZES.items():
        assert old in script
        script = script.replace(old, new)
    exec(script, {})
    assert len(Path("deleted.txt").read_text().split()) == 25 and len(Path("members.txt").read_text().split()) == 100
    Path("request.yaml").write_text(
        plan.replace(": 1000", ": 100").replace("forget: 100, unseen: 100", "forget: 25, unseen: 25")
    )
    (audit,) = (line for line in commands.splitlines() if line.startswith("orch audit"))
    here = ["--workers", "0", "--store", str(tmp_path / "store")]
    changes = [part for each in (*SMALLER, f"tracking.uri=sqlite:///{tmp_path}/mlflow.db") for part in ("--set", each)]
    assert main([*audit.split()[1:], *here, *changes]) in (0, 1)  # the gate may fail, and fails of the whole one
    for name in ("result.json", "plan.yaml", "orch.xml", "summary.md"):
        assert (tmp_path / "evidence" / name).is_file(), name
    document = json.loads(Path("evidence/result.json").read_text())
    assert document["gate"]["limits"][0]["limit"] == "labels.auc=0.6"
    assert set(document["plan"]["target"]["sha256"]) == {"after.pt", "before.pt", "members.txt", "deleted.txt"}
    assert document["pictures"] is False
