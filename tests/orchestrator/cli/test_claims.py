"""The folder of a sweep or a choice: what goes on there, and what is refused without a change to it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from orchestrator.cli import sweep as sweep_command
from orchestrator.cli.main import main
from orchestrator.engine.given_files import with_digests
from orchestrator.engine.run.search_checks import head_of
from orchestrator.engine.run.search_journal import JOURNAL_FILE, Journal

METRIC = "gradient_ascent.apollo.auc"
FILE = {
    "base": "apollo-smoke",
    "space": {"audit.search.epsilon": {"loguniform": [0.02, 1.0]}},
    "samples": 3,
    "search": "optuna",
    "metric": METRIC,
}
OUT = ("--out", "runs/x")


class Runs:
    """Stands for the runs of ``orch``: notes their names, begins the journal of a search, and finishes unless told."""

    def __init__(self) -> None:
        self.finish = True
        self.names: list[str] = []

    def sweep(self, kind: Any, sweep: Any, plan: Any, out: Path, *rest: Any, force: bool, **how: Any) -> Any:
        self.names.append(sweep.name)
        if sweep.search is not None and sweep.search.adaptive:
            Journal(out / JOURNAL_FILE, head_of(sweep.search, with_digests(plan))).begin(force=force)
        return self.ended(out, {})

    def ended(self, out: Path, document: dict[str, Any]) -> Any:
        if not self.finish:
            raise KeyboardInterrupt
        (out / "result.json").write_text(json.dumps(document))
        return self

    def to_json(self) -> dict[str, Any]:
        return {}


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Runs:
    found = Runs()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ORCH_STORE", str(tmp_path / "store"))
    monkeypatch.setattr(sweep_command, "run_sweep", found.sweep)
    monkeypatch.setattr(sweep_command, "show_result", lambda *shown: None)
    written()
    return found


def written(name: str = "o.yaml", **fields: object) -> str:
    Path(name).write_text(yaml.safe_dump({**FILE, **fields}, sort_keys=False))
    return name


def digests() -> dict[str, str]:
    files = [each for each in Path("runs").rglob("*") if each.is_file()]
    return {str(each): hashlib.sha256(each.read_bytes()).hexdigest() for each in files}


@pytest.mark.parametrize(
    ("words", "changed"),
    [(("--set", "split.shadows=16"), {}), (("--mode", "min"), {}), ((), {"search_seed": 7})],
)
def test_a_refused_command_leaves_an_interrupted_search_as_it_was(
    words: tuple[str, ...], changed: dict[str, object], runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    runs.finish = False
    assert main(["sweep", "o.yaml", *OUT]) == 130
    before = digests()
    assert {Path(each).name for each in before} >= {"plan.yaml", "sweep.yaml", JOURNAL_FILE}
    capsys.readouterr()
    assert main(["sweep", written(**changed), *words, *OUT]) == 2
    assert "is of another search" in capsys.readouterr().err
    assert digests() == before
    runs.finish = True
    assert main(["sweep", "--resume", *OUT]) == 0


@pytest.mark.parametrize("finish", [False, True], ids=["interrupted", "finished"])
@pytest.mark.parametrize("words", [("o.yaml",), ("--resume",), ("o.yaml", "--resume")], ids=" ".join)
@pytest.mark.parametrize("more", [("--samples", "11"), ("--seconds", "60")], ids=" ".join)
def test_more_samples_or_seconds_extend_a_search(
    finish: bool, words: tuple[str, ...], more: tuple[str, ...], runs: Runs
) -> None:
    written(seconds=30)
    runs.finish = finish
    assert main(["sweep", "o.yaml", *OUT]) == (0 if finish else 130)
    assert main(["sweep", *words, *more, *OUT]) == (0 if finish else 130)
    kept = yaml.safe_load(Path("runs/x/sweep.yaml").read_text())
    assert str(kept[more[0].strip("-")]) == more[1]


def test_more_random_settings_extend_a_sweep_but_other_ones_do_not(
    runs: Runs, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("o.yaml").write_text(yaml.safe_dump({**FILE, "search": "random"}))
    assert main(["sweep", "o.yaml", *OUT]) == 0
    assert main(["sweep", "o.yaml", "--samples", "5", *OUT]) == 0
    before = digests()
    assert main(["sweep", "o.yaml", "--samples", "5", "--search-seed", "1", *OUT]) == 2
    assert "holds the run of another sweep" in capsys.readouterr().err
    assert main(["sweep", "--vary", "audit.search.epsilon=0.1,0.2", "apollo-smoke", *OUT]) == 2
    assert digests() == before
