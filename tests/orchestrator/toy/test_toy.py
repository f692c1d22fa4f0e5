"""A further kind of audit, registered by one line, is run, stored, swept, tracked, reported, gated and priced."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
import yaml

from audits.statistics.roc import auc
from orchestrator.cli.main import main
from orchestrator.engine.data import data_of
from orchestrator.engine.jobs.code_version import reached
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import claim_folder
from orchestrator.engine.run.run import Result, run_sweep
from orchestrator.engine.store.payloads import pack_table
from orchestrator.kinds import KINDS, kind_named, open_design
from tests.cases.runs import audited, swept, take_turns, two_in_turn
from tests.orchestrator.toy import page as toy_page
from tests.orchestrator.toy.bench import Bench
from tune_spaces import SWEEPS
from tune_spaces.registry import Sweep, fixed

TARGETS = 3


@pytest.fixture(scope="module")
def finished(bench: Bench) -> Result:
    return audited(bench.plan(), bench.place / "first", shown=True)


def test_it_runs_and_its_result_is_what_its_scores_say(finished: Result, bench: Bench) -> None:
    document, table = finished.to_json(), finished.scores.to_pandas()
    assert (document["kind"], document["name"], document["schema"]) == ("toy", "toy-audit", "orch.result/2")
    assert document["population"] == {"models": TARGETS, "reused": 0, "trained": TARGETS}
    assert len(table) == 2 * TARGETS * 80 and table.groupby(["attack", "target"]).member.sum().eq(40).all()
    for row in document["table"]:
        own = table[table.attack == row["attack"]]
        each = [auc(some.score.to_numpy(), some.member.to_numpy()) for _, some in own.groupby("target")]
        assert row["auc"] == pytest.approx(np.mean(each), abs=1e-12)
    assert {row["attack"]: row["auc"] > 0.55 for row in document["table"]} == {"loss": True, "right": True}
    written = {path.name for path in (bench.place / "first").iterdir()}
    assert {"result.json", "scores.parquet", "plan.yaml", "report.html"} <= written


def test_it_is_stored_and_a_second_run_trains_and_scores_nothing(finished: Result, bench: Bench) -> None:
    before = bench.made()
    assert before == {"train": TARGETS, "score": TARGETS}
    again = audited(bench.plan(), bench.place / "again")
    assert bench.made() == before
    assert again.document["population"] == {"models": TARGETS, "reused": TARGETS, "trained": 0}
    assert pack_table(again.scores) == pack_table(finished.scores)


def test_copies_across_borders_are_told_at_the_start_and_in_the_result(
    finished: Result, bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "orchestrator.engine.run.run.copy_warnings", lambda design, **_: [f"copies in {design.data.name}"]
    )
    document = audited(bench.plan(), bench.place / "copies").document
    assert document["warnings"] == [*finished.document["warnings"], "copies in digits"]
    told = capsys.readouterr().out
    assert told.index("warning: copies in digits") < told.index("population:")


def test_notes_of_the_data_are_told_at_the_start_and_in_the_result_and_change_no_key(
    finished: Result, bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "digits: 3 columns are left out"
    data = replace(data_of("digits", None), notes=(line,))
    monkeypatch.setattr("orchestrator.engine.run.run.data_of", lambda *_: data)
    document = audited(bench.plan(), bench.place / "noted").document
    assert document["notes"] == [*finished.document["notes"], line]
    assert document["population"]["trained"] == 0
    told = capsys.readouterr().out
    assert told.count(line) == 1 and told.index(line) < told.index("population:")


def test_two_workers_change_no_bit(finished: Result, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its workers know the kind by its place alone: nobody registered it there."""
    plan = bench.plan(compute__workers=2, compute__store=str(bench.place / "other"))

    def unregistered(*arguments: Any, **named: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.delitem(KINDS, "toy")
            two_in_turn(*arguments, **named)

    take_turns(monkeypatch, unregistered)
    assert pack_table(audited(plan, bench.place / "two").scores) == pack_table(finished.scores)


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("engine", ["train", "actors"])
def test_two_workers_of_ray_change_no_bit(finished: Result, bench: Bench, engine: str) -> None:
    """In short: ``tests/orchestrator/engine/run/test_killed_driver.py``, of an audit by Ray Train."""
    plan = bench.plan(compute__workers=2, compute__engine=engine, compute__store=str(bench.place / f"by {engine}"))
    assert pack_table(audited(plan, bench.place / "one").scores) == pack_table(finished.scores)


SETTINGS: dict[str, dict[str, Any]] = {
    "base": {},
    "right alone": {"audit.attacks": ["right"]},
    "epochs=2": {"recipe.epochs": 2},
}


def toy_sweep(bench: Bench) -> Sweep:
    base = kind_named("toy").default_plan
    return Sweep("toy-sweep", "Fewer epochs, fewer attacks.", base, fixed(SETTINGS), "loss.auc", "a table")


def test_it_is_swept_and_settings_share_what_they_can(finished: Result, bench: Bench) -> None:
    plan, out, before = bench.plan(), bench.place / "sweep", bench.made()
    document = run_sweep(kind_named("toy"), toy_sweep(bench), plan, out, Terminal(claim_folder(out, plan))).to_json()
    assert bench.made() - before == {"train": TARGETS, "score": 2 * TARGETS}
    rows = {(row["setting"], row["attack"]): row["auc"] for row in document["table"]}
    assert list(rows) == [
        *(("base", "loss"), ("base", "right"), ("right alone", "right"), ("epochs=2", "loss"), ("epochs=2", "right"))
    ]
    first = {row["attack"]: row["auc"] for row in finished.document["table"]}
    assert rows["base", "loss"] == first["loss"] and rows["right alone", "right"] == first["right"]
    assert rows["epochs=2", "loss"] != first["loss"]
    assert (document["name"], document["makes"]) == ("toy-sweep", "a table")


def test_the_first_setting_of_a_sweep_is_told_before_the_others_go_on(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, out, sweep = (
        bench.plan(compute__store=str(bench.place / "ahead")),
        bench.place / "ahead-out",
        toy_sweep(bench),
    )
    for ahead in (replace(sweep, ahead=True), sweep):
        document = swept(ahead, plan, out).to_json()
        told = capsys.readouterr().out
        if ahead.ahead:
            first, others = (
                told.index("setting base, before the other 2:"),
                told.index("settings: 3, 1 reused, 2 to run"),
            )
            value = f"{document['table'][0]['auc']:.3f}".removeprefix("0")
            assert "loss" in told[first:others] and value in told[first:others]
        else:
            assert "before the other" not in told  # nothing is left
    swept(replace(sweep, ahead=True), plan, out)
    assert "before the other" not in capsys.readouterr().out


def test_it_is_tracked_with_its_numbers_plan_and_files(finished: Result, bench: Bench) -> None:
    from mlflow import MlflowClient

    tracked, client = finished.document["tracking"], MlflowClient(tracking_uri=bench.tracker)
    parent, child = (client.get_run(run) for run in (tracked["parent"], tracked["children"]["base"]))
    numbers = {f"{row['attack']}.auc": row["auc"] for row in finished.document["table"]}
    for run in (parent, child):
        assert {name: run.data.metrics[name] for name in numbers} == numbers
        assert run.data.params["split.train_size"] == "40"
    assert parent.data.tags["orch.kind"] == "toy"
    assert {"result.json", "report.html"} <= {file.path for file in client.list_artifacts(tracked["parent"])}


def test_it_is_reported_by_its_own_page(finished: Result, bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    page = bench.place / "first" / "report.html"
    written = page.read_text("utf-8")
    for row in finished.document["table"]:
        assert f'<td class="text">{row["attack"]}</td><td>{row["auc"]:.3f}'.replace(">0.", ">.") in written
    assert "orch audit toy plan.yaml" in written
    page.unlink()
    assert main(["report", str(bench.place / "first")]) == 0
    assert page.read_text("utf-8") == written
    capsys.readouterr()
    assert main(["report", str(bench.place / "first"), "--markdown"]) == 0
    assert "| base | loss | ." in capsys.readouterr().out


@pytest.mark.usefixtures("finished")
@pytest.mark.parametrize("kept", [True, False])
def test_no_picture_leaves_a_run_that_is_told_so(kept: bool, bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def shown(document: Any, data: Any) -> dict[int, Any]:
        asked.append(document)
        return {}

    monkeypatch.setattr(toy_page, "PAGE", replace(toy_page.PAGE, images=shown))
    out = bench.place / ("shown" if kept else "unshown")
    plan = bench.place / "pictured.yaml"
    plan.write_text(bench.plan().to_yaml())
    assert main(["audit", "toy", str(plan), "--out", str(out), *([] if kept else ["--no-pictures"])]) == 0
    document = json.loads((out / "result.json").read_text())
    assert (document.get("pictures"), len(asked)) == ((None, 1) if kept else (False, 0))
    assert datetime.fromisoformat(document["date"]).utcoffset() == timedelta(0)


@pytest.mark.usefixtures("finished")
def test_it_is_gated(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    out = ("--out", str(bench.place / "gated"))
    assert bench.command("audit", "toy", *out, "--fail-above", "auc=0.99", "--fail-above", "right.auc=0.99") == 0
    assert "AUC of members" in capsys.readouterr().out
    assert bench.command("audit", "toy", *out, "--fail-above", "loss.auc=0.1", "--json") == 1
    told = capsys.readouterr()
    assert json.loads(told.out)["kind"] == "toy"
    assert "gate loss.auc=0.1: failed: auc is 0." in told.err and "(base, loss), above 0.1" in told.err
    assert bench.command("audit", "toy", *out, "--fail-above", "los.auc=0.1") == 2
    assert "attack 'los' (did you mean 'loss'?) is not in the plan: loss, right" in capsys.readouterr().err


def test_it_is_priced(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    file = bench.place / "priced.yaml"
    file.write_text(yaml.safe_dump(bench.plan(compute__store=str(bench.place / "empty")).resolved()))
    assert main(["cost", str(file), "--json"]) == 0
    cost = json.loads(capsys.readouterr().out)
    assert [(each["stage"], each["needed"], each["missing"]) for each in cost["stages"]] == [
        ("train", TARGETS, TARGETS), ("score", TARGETS, TARGETS),
    ]  # fmt: skip
    assert all(each["unit_seconds"] > 0 for each in cost["stages"]) and cost["bytes"] > 0
    assert {each["attack"]: each["total"] for each in cost["queries"]} == {"loss": 240, "right": 240}


@pytest.mark.usefixtures("finished")
def test_its_sweep_is_priced_and_run_by_name(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(SWEEPS, "_entries", {**{name: SWEEPS[name] for name in SWEEPS}, "toy-sweep": toy_sweep(bench)})
    store = ("--store", str(bench.place / "store"), "--workers", "0")
    assert main(["cost", "--sweep", "toy-sweep", *store, "--json"]) == 0
    stages = json.loads(capsys.readouterr().out.splitlines()[-1])["stages"]
    assert {each["stage"]: each["needed"] for each in stages} == {"train": 2 * TARGETS, "score": 3 * TARGETS}
    tracker = ("--set", f"tracking.uri={bench.tracker}")
    assert main(["sweep", "toy-sweep", *store, *tracker, "--out", str(bench.place / "named"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["settings"]) == len(SETTINGS)


REFUSED = [
    ("audit.atacks=[loss]", "did you mean 'attacks'"),
    ("model.settings.hiden=[3]", "did you mean 'hidden'"),
    ("split.train_size=900", "split.train_size: two halves of 900, but there are 1797 points"),
]


def test_it_is_listed_and_its_plans_are_checked(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["ls", "audits"]) == 0
    listed = [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()]
    assert ["toy", "Are losses lower at the points that a model trained on?"] in listed
    default = kind_named("toy").default_plan
    assert main(["validate", default]) == 0
    for change, said in REFUSED:
        capsys.readouterr()
        assert main(["validate", default, "--set", change]) == 2
        assert said in capsys.readouterr().err
    assert any("nobody sees how much models differ" in line for line in bench.plan(split__targets=1).warnings)


def test_its_keys_follow_its_own_code(bench: Bench) -> None:
    kind, jobs = kind_named("toy"), open_design(bench.plan()).jobs()
    for name in ("train", "score"):
        found = reached((kind.stage(name).body.__module__,))
        assert {"tests.orchestrator.toy.design", "tests.orchestrator.toy.plan", "audits.training.loop"} <= set(found)
        assert not {"tests.orchestrator.toy.page", "tests.orchestrator.toy.headline"} & set(found)
    trained = {job.key for job in jobs if job.stage == "train"}
    assert all(set(job.needs) <= trained for job in jobs)
