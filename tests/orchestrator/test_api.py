"""Audits from Python: the same results as the command line's, as tables, frames, figures, and a notebook's cell."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import orchestrator
from audits.errors import BadInput
from audits.models import make_model
from orchestrator import Report, audit, sweep
from orchestrator.api import runs
from orchestrator.api.runs import planned
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.sweep_files import sweep_named
from orchestrator.engine.run.run import Run
from orchestrator.engine.run.search_checks import head_of
from orchestrator.engine.run.search_journal import JOURNAL_FILE, Journal
from orchestrator.engine.run.taking import hold_folder
from orchestrator.kinds import load_plan
from tests.cases.runs import audited, draw_only
from tests.cases.smallest_plans import ALL_DEFENCES, GNQ
from tests.docs.commands import python_blocks

VALUES = {field: value for field, value in GNQ.items() if "inversion" not in field}
VALUES |= {"defences": ALL_DEFENCES[:1], "audit.attacks": ["loss", "lira"]}


PAGE, GIVEN = (block for path, block in python_blocks() if path.name == "python.md")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """The report that docs/how-to/python.md makes, of a smaller plan and not tracked."""
    folder = tmp_path_factory.mktemp("api")

    def smaller(plan: runs.Plan, values: Any, workers: Any, store: Any) -> BasePlan:
        return planned(plan, {**values, **VALUES}, workers, folder / "store")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "planned", smaller)
        patch.setattr(Run, "track", lambda run, document: None)
        patch.setattr(Run, "watch", lambda run, settings, left, **how: None)
        draw_only(patch, "frontier")
        patch.chdir(folder)
        scope: dict[str, Any] = {}
        exec(PAGE, scope)
        assert scope["passed"] == (not scope["report"].failures({"auc": 0.9}))
        return Report(folder / "gnq")


def test_the_scores_are_those_of_the_command_line(report: Report, tmp_path: Path) -> None:
    store = report.folder.parent / "store"
    plan = load_plan("gnq-smoke", values={**VALUES, "compute.workers": 0, "compute.store": str(store)})
    assert audited(plan, tmp_path / "out").document["population"]["trained"] == 0, "each job has the same key"
    assert (report.folder / "scores.parquet").read_bytes() == (tmp_path / "out" / "scores.parquet").read_bytes()
    assert report.scores.num_rows > 0
    assert report.page.is_file()


def test_tables_figures_and_a_cell(report: Report) -> None:
    assert report.table == json.loads((report.folder / "result.json").read_text())["table"]
    frame = report.to_pandas()
    assert len(frame) == len(report.table)
    assert "arm" in frame.columns
    assert list(report.figures) == sorted(file.stem for file in (report.folder / "figures").glob("*.svg"))
    assert report.figure()._repr_svg_().lstrip().startswith(("<?xml", "<svg"))
    cell = report._repr_html_()
    assert "<table>" in cell and all(line.split(":")[0] in cell for line in report.lines)
    assert repr(report).startswith(f"Report('{report.folder}')")


def test_a_result_passes_and_fails_limits(report: Report) -> None:
    example = report._kind.headline.example.partition("=")[0]
    assert report.failures({example: 0.0})
    assert not report.failures([f"{example}=0.9999"])
    with pytest.raises(BadInput, match="nonsense"):
        report.failures(["nonsense=1"])


def test_the_same_folder_is_opened_again(report: Report, tmp_path: Path) -> None:
    assert Report(report.folder).document == report.document
    with pytest.raises(BadInput, match=r"has no result.json"):
        Report(tmp_path)
    with pytest.raises(BadInput, match=r"no figure 'frontie'.*frontier"):
        report.figure("frontie")


def test_plans_come_as_names_files_mappings_and_plans(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "mine.yaml"
    named = load_plan("gnq-smoke")
    file.write_text(named.to_yaml())
    for plan in ("gnq-smoke", file, named.resolved(), named):
        found = planned(plan, {"split.shadows": 6}, 0, tmp_path)
        assert found.kind == "gnq"
        assert found.resolved()["split"]["shadows"] == 6
        assert found.resolved()["compute"]["store"] == str(tmp_path)
    assert planned("gnq", None, 0, None).plan_hash == load_plan("gnq-fashion14").plan_hash
    monkeypatch.chdir(tmp_path)
    Path("gnq-smoke").write_text("audit: {kind: gnq}\nseed: 77\n")
    assert [planned(each, None, 0, None).seed for each in ("gnq-smoke", Path("gnq-smoke"))] == [0, 77]


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="shadowz"):
        audit("gnq-smoke", {"split.shadowz": 3}, out=tmp_path / "a")
    with pytest.raises(BadInput, match="gnq-ridge is of audits of kind gnq, but the plan is of kind apollo"):
        sweep("gnq-ridge", "apollo-smoke", out=tmp_path / "a")
    with pytest.raises(BadInput, match="measures utility"):
        sweep("unlearning-presets", out=tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.long
def test_a_run_keeps_aggregates_only(report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In short: ``tests/orchestrator/report/test_aggregates.py``."""
    monkeypatch.setattr(Run, "track", lambda run, document: None)
    draw_only(monkeypatch, "frontier")
    out, store = tmp_path / "out", report.folder.parent / "store"
    found = audit("gnq-smoke", VALUES, store=store, out=out, quiet=True, aggregate_only=True)
    assert found.document["aggregate_only"] is True and not (out / "scores.parquet").exists()


def test_a_search_of_other_trials_is_refused_and_its_folder_left_alone(tmp_path: Path) -> None:
    file, out = tmp_path / "search.yaml", tmp_path / "out"
    file.write_text(
        "{base: gnq-smoke, space: {split.shadows: {choice: [4, 6]}}, "
        "samples: 2, search: optuna, metric: none.lira.naive.auc}"
    )
    wanted, plan = sweep_named(str(file)), planned("gnq-smoke", None, 0, tmp_path / "store")
    with hold_folder(out, plan, force=False, sweep=wanted) as claim:
        assert wanted.search is not None
        claim()
    Journal(out / JOURNAL_FILE, head_of(wanted.search, plan)).begin()
    before = {each: each.read_bytes() for each in out.iterdir()}
    with pytest.raises(BadInput, match=r"of another plan \(seed: 0 there, 7 here\)"):
        sweep(str(file), "gnq-smoke", {"seed": 7}, store=tmp_path / "store", out=out)
    assert {each: each.read_bytes() for each in out.iterdir()} == before


def test_importing_is_cheap_and_needs_no_ray() -> None:
    code = "import sys, orchestrator; print(sorted({'torch', 'ray', 'mlflow', 'pandas'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
    assert {"audit", "sweep", "Report"} <= set(dir(orchestrator))


def test_a_module_and_arrays_are_audited_as_they_are_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    draw_only(monkeypatch)
    monkeypatch.setattr(Run, "track", lambda run, document: None)
    monkeypatch.setattr(Run, "watch", lambda run, settings, left, **how: None)
    x, y = np.random.default_rng(0).normal(size=(60, 1, 3, 4)).astype(np.float32), np.arange(60) % 3
    member = np.arange(60) < 24
    net = make_model("mlp", {}).build((1, 3, 4), 3, seed=0)
    scope = {"orchestrator": orchestrator, "net": net, "ids": member, "images": x, "labels": y}
    exec(GIVEN, scope)
    found = scope["report"]
    assert found.document["targets"][0]["members"].endswith(".npy")
    table = found.scores.to_pandas()
    assert table[table.group == "members"].point_id.tolist() == list(range(24))
    loader = DataLoader(TensorDataset(torch.from_numpy(x), torch.from_numpy(y)), shuffle=True)
    given = {"weights": net, "members": np.arange(24)}
    again = audit("gnq", {"model.name": "mlp"}, target=given, data=loader, quiet=True, out="again")
    assert again.scores.equals(found.scores)
    assert not list(Path(".orch/given").glob(".*"))


def test_a_target_that_is_none_is_refused_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadInput, match="give the model as target"):
        audit("gnq", members=np.arange(5))
    with pytest.raises(BadInput, match="give them once"):
        audit("gnq", target={"weights": "m.pt", "members": "all"}, members="odd")
    with pytest.raises(BadInput, match=r"target.members is an array of float64 of shape \(2, 2\)"):
        audit("gnq", target="m.pt", members=np.ones((2, 2)))
    with pytest.raises(BadInput, match="data is int; give inputs and labels as arrays"):
        audit("gnq", target="m.pt", members="all", data=3)
