"""A search for a Pareto front of an attack and accuracy: Dropout around a real Apollo plan, by Optuna."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from audits.statistics.roc import auc
from orchestrator.apollo.page.page import PAGE
from orchestrator.apollo.result.metrics import metrics
from orchestrator.engine.run.target_parts import judging, parts_of
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named, load_plan
from tests.cases.runs import begun, draw_only, jobs_of
from tests.orchestrator.apollo.test_pipeline import TINY
from tune_spaces.files import sweep_of

METRIC = ["gradient_ascent.utility.test_accuracy", "gradient_ascent.apollo.auc"]
FILE: dict[str, Any] = {
    "base": "apollo-smoke",
    "space": {"model.settings.dropout": [0.0, 0.4, 0.8]},
    "samples": 2,
    "search": "optuna",
    "search_seed": 1,
    "metric": METRIC,
    "mode": ["max", "min"],
}


def plan_in(place: Path) -> Any:
    one_set = ("split.targets_per_shadow_set=2", "split.train_size=120", "split.target_pool=240", "recipe.epochs=1")
    more = (*one_set, "split.shadows=4", "audit.attacks=[apollo]", f"compute.store={place / 'store'}")
    return load_plan("apollo-smoke", (*TINY, *more))


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    place = tmp_path_factory.mktemp("front")
    sweep = sweep_of(FILE, "dropout")
    return place, begun(plan_in(place), place / "out", sweep.name).sweep(sweep).document


def test_values_of_trials_are_means_over_targets_of_accuracy_and_of_the_attack(searched: Any) -> None:
    place, document = searched
    table = pq.read_table(place / "out" / "scores.parquet").to_pandas()
    trials = [row for row in document["search"]["trials"] if row["repeats"] is None]
    assert len(trials) > 1 and {row["state"] for row in trials} == {"done"}
    for row in trials:
        own = table[
            (table.setting == row["setting"]) & (table.unlearner == "gradient_ascent") & (table.attack == "apollo")
        ]
        areas = [auc(each.score.to_numpy(), each.group.to_numpy() == "forget") for _, each in own.groupby("target")]
        plan = plan_in(place).changed(row["changes"])
        store = Store(str(place / "store"))
        kept = [
            json.loads(store.get("utility", job.key).read("metrics.json"))["test_accuracy"]
            for job in jobs_of(plan, "utility")
            if job.label == "gradient_ascent"
        ]
        assert len(areas) == len(kept) == 2
        assert row["values"] == pytest.approx([np.mean(kept), np.mean(areas)])


def test_page_and_tracker_have_the_front_with_intervals(searched: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    place, document = searched
    rows = {row["setting"]: row for row in document["front"]["settings"]}
    values = {row["setting"]: row["values"] for row in document["search"]["trials"]}
    assert rows.keys() == values.keys()
    for name, row in rows.items():
        assert [row["accuracy"], row["auc"]] == pytest.approx(values[name])
        assert row["auc_low"] <= row["auc"] <= row["auc_high"]
        told = metrics(document, name)
        for field in ("auc", "auc_low", "auc_high", "accuracy", "accuracy_low", "accuracy_high", "share", "on_front"):
            assert told[f"front.{field}"] == float(row[field])
    risk = {name: max(0.5, values[name][1]) for name in values}
    unbeaten = {
        name
        for name in values
        if not any(
            risk[other] <= risk[name] and values[other][0] >= values[name][0]
            and (risk[other], values[other][0]) != (risk[name], values[name][0])
            for other in values
        )
    }  # fmt: skip
    assert {name for name, row in rows.items() if row["on_front"]} == unbeaten
    draw_only(monkeypatch, "trade")
    page = PAGE.write(place / "out").read_text()
    assert '<section id="trade">' in page and (place / "out" / "figures" / "trade.svg").exists()
    assert "trade" in PAGE.csv(place / "out")


def test_a_part_of_the_targets_has_its_accuracies() -> None:
    """So that asha can stop trials by accuracy: each part measures its own targets, and no other."""
    kind = kind_named("apollo")
    jobs = jobs_of(load_plan("apollo-smoke", ["split.targets=4"]))
    parts = len(parts_of(kind, jobs))
    assert parts == 4
    measured = [{job.key for job in judging(kind, jobs, count) if job.stage == "utility"} for count in range(parts + 1)]
    labels = {job.label for job in jobs if job.stage == "utility"}
    assert [len(each) for each in measured] == [count * len(labels) for count in range(parts + 1)]
    assert all(few < more for few, more in pairwise(measured))


@pytest.mark.parametrize(
    ("metric", "mode", "trade"),
    [
        (METRIC, ["max", "min"], tuple(METRIC[::-1])),
        (METRIC[::-1], ["min", "max"], tuple(METRIC[::-1])),
        (METRIC, ["max", "max"], None),
        (METRIC[:1], ["max"], None),
    ],
)
def test_the_metric_to_lower_and_the_one_to_raise_are_the_trade(metric: Any, mode: Any, trade: Any) -> None:
    assert sweep_of({**FILE, "metric": metric, "mode": mode}, "dropout").trade == trade
