"""A sweep of utilities: targets only, the closest to retraining chosen, presets that a plan can take."""

from __future__ import annotations

import dataclasses
import json

import pytest

from orchestrator.apollo.presets import read_presets
from orchestrator.apollo.tuning import ACCURACIES
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.run import run_tuning
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named, load_plan
from orchestrator.report.numbers import number
from tune_spaces import SWEEPS
from tune_spaces.registry import fixed

RATES = (0.001, 0.05, 5.0)
LADDER = {
    f"gradient_ascent lr={rate:g}": {
        "unlearning": [
            {"method": "identity"},
            {"method": "gradient_ascent", "learning_rate": rate, "epochs": 3},
            {"method": "retrain"},
        ]
    }
    for rate in RATES
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuning")
    plan = load_plan(
        "apollo-smoke",
        (f"compute.store={folder / 'store'}", "compute.workers=0", f"tracking.uri=sqlite:///{folder}/m.db"),
    )
    sweep = dataclasses.replace(SWEEPS["unlearning-presets"], varies=fixed(LADDER))
    out = folder / "out"
    out.mkdir()
    return plan, out, run_tuning(kind_named("apollo"), sweep, plan, out, Terminal(None, json=True)), sweep


def test_only_targets_are_made_and_nothing_is_attacked(finished):
    plan, *_ = finished
    store = Store(plan.compute.store)
    assert len(store.keys("train")) == plan.split.targets
    assert len(store.keys("unlearn")) == plan.split.targets * (len(RATES) + 1)
    assert not store.keys("search") and not store.keys("score") and not store.keys("trace")


def test_the_distance_is_the_mean_gap_to_the_retrained_targets(finished):
    plan, _, document, _ = finished
    store = Store(plan.compute.store)
    by_model: dict[str, list[dict[str, float]]] = {}
    for artefact in store.artefacts("utility"):
        found = json.loads(artefact.read("metrics.json"))
        by_model.setdefault(str(artefact.document["method"]), []).append(found)
    assert len(by_model["retrain"]) == plan.split.targets
    for row in document["rows"]:
        assert row["targets"] == plan.split.targets
        for name in ACCURACIES:
            wanted = sum(found[name] for found in by_model["retrain"]) / plan.split.targets
            assert row[f"retrain_{name}"] == pytest.approx(wanted)
        if plan.split.targets == 1:
            gap = sum(abs(row[name] - row[f"retrain_{name}"]) for name in ACCURACIES) / len(ACCURACIES)
            assert row["distance"] == pytest.approx(gap)
        # a mean of absolute gaps is at least the gap of the means
        floor = sum(abs(row[name] - row[f"retrain_{name}"]) for name in ACCURACIES) / len(ACCURACIES)
        assert row["distance"] >= floor - 1e-12


def test_the_closest_setting_that_is_not_flagged_is_chosen(finished):
    _, _, document, _ = finished
    rows = {row["settings"]["learning_rate"]: row for row in document["rows"]}
    assert rows[5.0]["flags"] == ["utility lost"]
    sound = [row for row in rows.values() if not row["flags"]]
    (preset,) = document["presets"]
    assert preset["settings"] == min(sound, key=lambda row: row["distance"])["settings"]


def test_the_presets_are_entries_of_a_preset_file(finished):
    plan, out, document, _ = finished
    (preset,) = read_presets((out / "presets.yaml").read_text(), "presets.yaml")
    assert (preset.data, preset.model, preset.method) == (plan.data.name, plan.model.name, "gradient_ascent")
    assert preset.settings == document["presets"][0]["settings"]
    table = (out / "presets.md").read_text()
    assert table.count("**chosen**") == 1 and all(name in table for name in LADDER)


def test_its_page_says_that_it_is_finished_and_has_the_distances(finished):
    _, out, document, _ = finished
    text = (out / "report.html").read_text()
    assert "unlearning-presets: finished" in text and "location.reload()" not in text
    for row in document["rows"]:
        (line,) = (line for line in text.splitlines() if f">{row['setting']}<" in line)
        assert f"<td>{number(row['distance'])}</td>" in line and ">finished<" in line


def test_the_same_sweep_again_makes_nothing(finished, tmp_path, capsys):
    plan, _, document, sweep = finished
    again = run_tuning(kind_named("apollo"), sweep, plan, tmp_path, Terminal(None, json=False))
    assert "3 reused, 0 to run" in capsys.readouterr().out
    assert again["rows"] == document["rows"]
