"""The how-tos of scores and comparisons do what they say, from the first line to the last."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.main import main
from tests.cases.runs import draw_only
from tests.docs.commands import BLOCK, ROOT, split_line


@pytest.mark.parametrize(
    ("page", "left"),
    [("score", "scored/result.json"), pytest.param("compare", "compared/compare.json", marks=pytest.mark.long)],
)
def test_a_how_to_runs_as_it_stands(page: str, left: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    draw_only(monkeypatch)
    for language, block in BLOCK.findall((ROOT / "docs" / "how-to" / f"{page}.md").read_text()):
        if language == "python":
            exec(block, {})
            continue
        for line in block.splitlines():
            for words in split_line(line):
                assert main(list(words[1:])) == 0, line
    assert (tmp_path / left).is_file() and (tmp_path / left).with_name("report.html").is_file()
