"""The benchmark of tuning under the null: it runs, and scores settings as ``orch tune`` does."""

from __future__ import annotations

import json
from statistics import fmean

import pytest

from benchmarks import tuning_null
from orchestrator.apollo.kind import KIND
from orchestrator.engine.setting import Setting
from orchestrator.kinds import load_plan
from tests.cases.runs import context_of


@pytest.mark.long
def test_the_quick_form_writes_its_record_and_scores_settings_as_orch_tune_does(tmp_path, capsys):
    tuning_null.main(["--quick", "--out", str(tmp_path), "--json", str(tmp_path / "a.json")])
    record = json.loads(capsys.readouterr().out)
    assert record == json.loads((tmp_path / "a.json").read_text())
    (seed,) = record["seeds"]
    assert {*record["methods"]} == {"retrain", "identity"} and record["settings"] == 1
    for method in tuning_null.METHODS:
        found, over = seed[method], record["methods"][method]
        assert over["best_on_targets"] >= over["own"] and over["best_on_targets"] >= over["tuned"]
        assert found["winner"] in ("plan", *tuning_null.drawn(1)) and len(found["on_targets"]) == 2
    tables = tuning_null.tables(record)
    assert "| retrain | " in tables and "| identity | " in tables

    values = {**tuning_null.QUICK, "seed": 0, "compute.store": str(tmp_path / "store")}
    winner = seed["retrain"]["winner"]
    plan = load_plan("apollo-fashion14", values=values).changed({"plan": {}, **tuning_null.drawn(1)}[winner])
    context = context_of(plan, tuning_null.Store(plan.compute.store))
    jobs = KIND.selection.jobs(context.design, "retrain.apollo.auc")
    for job in jobs:
        if not context.store.has(job.stage, job.key):
            assert job.stage in ("rehearse", "appraise")  # the models are there
            context.perform(job)
    setting = Setting("chosen", {}, plan, tuple(jobs))
    values = KIND.selection.values(setting, context.store, "retrain.apollo.auc")
    assert fmean(values.values()) == seed["retrain"]["at_selection"]


def test_the_settings_are_the_same_every_time_and_differ_from_each_other():
    found = tuning_null.drawn(50)
    assert found == tuning_null.drawn(50) and len({json.dumps(each) for each in found.values()}) == 50
