"""The page about components of one's own: its files and its plan, as they stand there, are audited and checked."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from audits.models import MODELS
from orchestrator.cli.main import main
from orchestrator.kinds import check_against_data, load_plan
from tests.cases.runs import audited

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "own-components.md").read_text()

FEWER = {
    "split.targets": 1,
    "audit.search.steps": 1,
    "audit.bootstrap": 20,
    "audit.permutations": 20,
}
"""Changes of the page's plan that make it cheaper and touch nothing of one's own."""


def blocks(language: str) -> list[str]:
    """Return the pieces in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.long
def test_the_page_does_what_it_says(folder: Path, tmp_path: Path) -> None:
    """In short: the other tests of this folder, of components that are as those of the page."""
    files = {text.split(maxsplit=2)[1]: text for text in blocks("python")}
    assert set(files) == {"nets.py", "training.py", "points.py", "forgetting.py", "attacks.py"}
    for name, text in files.items():
        (folder / name).write_text(text)
    (whole,) = blocks("yaml")
    (folder / "plan.yaml").write_text(whole)
    assert set(yaml.safe_load(whole)) == {"audit", "data", "split", "model", "recipe", "unlearning"}
    plan = load_plan("plan.yaml", values={**FEWER, "compute.workers": 0, "compute.store": str(tmp_path / "store")})
    check_against_data(plan)
    scores = audited(plan, tmp_path / "out").scores
    assert set(scores["attack"].to_pylist()) == {"apollo", "python:attacks:Margin"}
    assert "shrink" in scores["unlearner"].to_pylist()
    for name in ("python:nets:SmallNet", "python:points:points", "python:forgetting:shrink"):
        assert main(["check", name]) == 0
    assert all(group in PAGE for group in (MODELS.group, "orch.data", "orch.unlearners", "orch.attacks", "orch.kinds"))
