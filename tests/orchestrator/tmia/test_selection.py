"""``orch tune tmia``: whose points a rehearsal takes in each mode, by what is chosen, and what there is to find."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from audits.errors import BadInput
from orchestrator.cli.main import main
from orchestrator.engine.run.choice import choice_of
from orchestrator.kinds import load_plan, open_design
from orchestrator.tmia.kind import KIND
from orchestrator.tmia.selection import SELECTION, selection_in
from tests.orchestrator.engine.run.test_tuned import asked_about, used
from tests.orchestrator.engine.run.tuned import rehearsal_of, tuning
from tune_spaces.registry import Sweep, fixed

METRIC = "selected.tmia_distance.advantage"
SELECTORS = {"none": {"audit.selectors": ["none"]}, "loss": {"audit.selectors": ["reference_loss"]}}


def around(settings: dict[str, dict[str, Any]]) -> Sweep:
    return Sweep("some", "", "tmia-smoke", fixed(settings), "", "")


def plan_of(**changes: Any) -> Any:
    return load_plan("tmia-smoke", values={"variants": {}, **{k.replace("__", "."): v for k, v in changes.items()}})


MODES: dict[str, dict[str, Any]] = {
    "II": {"audit.mode": "II", "transfer.train_size": 60},
    "II, other classes": {"audit.mode": "II", "split.classes": "even", "transfer.classes": "odd"},
    "III": {"audit.mode": "III", "transfer.train_size": 60},
    "III, other classes": {"audit.mode": "III", "split.classes": "odd", "transfer.classes": "even"},
}


def test_variants_take_no_part_in_a_choice_and_nobody_is_warned_of_them():
    plan = load_plan("tmia-smoke", ["split.attacker_points=300"])
    assert plan.variants and any("variant" in line for line in plan.warnings)
    own = SELECTION.own(plan)
    assert not own.variants and not any("variant" in line for line in own.warnings)


@pytest.mark.parametrize("mode", MODES)
def test_teachers_and_students_of_a_rehearsal_share_no_point_with_targets(mode):
    plan = plan_of(**MODES[mode])
    audit, rehearsal = open_design(plan), rehearsal_of(plan, METRIC)
    assert {model.side for model in rehearsal.models.values()} == {"own", "other"}
    assert not used(rehearsal) & asked_about(audit)
    for model in rehearsal.models.values():
        if model.side == "other":
            assert not np.isin(model.train, rehearsal.sets.candidates).any()


def test_groups_are_kept_apart_between_audit_and_rehearsal(tmp_path: Path):
    file = tmp_path / "groups.csv"
    file.write_text("id,group\n" + "".join(f"{point},{point // 3}\n" for point in range(1797)))
    plan = plan_of(**{"data.groups": str(file), **MODES["III"]})
    audit, rehearsal = open_design(plan), rehearsal_of(plan, METRIC)
    groups = audit.data.groups
    assert not {*groups[sorted(used(rehearsal))].tolist()} & {*groups[sorted(asked_about(audit))].tolist()}
    inside = rehearsal.sets.membership[0]
    candidates = groups[rehearsal.sets.candidates]
    assert not {*candidates[inside].tolist()} & {*candidates[~inside].tolist()}


def test_the_pool_correction_is_that_of_the_rehearsals_own_pool():
    plan = plan_of()
    rehearsal, (job,) = rehearsal_of(plan, METRIC), rehearsal_of(plan, METRIC).jobs()[-1:]
    pool = len(rehearsal.sets.attacker_points)
    assert pool < plan.split.attacker_points and job.document["pool_sets"] == str(pool / plan.split.train_size)


def test_settings_of_different_selectors_are_compared_by_their_first_that_selects():
    plan = plan_of(**{"audit.selectors": ["none", "reference_loss", "kmeans"]})
    assert selection_in(plan, METRIC) == "reference_loss"
    assert selection_in(plan.changed({"audit.selectors": ["none"]}), METRIC) == "none"
    assert selection_in(plan, METRIC.replace("selected", "kmeans")) == "kmeans"
    assert "all.tmia_posterior.auc" in SELECTION.metrics(plan) and "all.tmia_distance.auc" not in SELECTION.metrics(
        plan
    )
    assert SELECTION.within(METRIC) == (-1.0, 1.0) and SELECTION.within("all.rmia.auc") == (0.0, 1.0)


def test_a_setting_without_the_selector_of_the_metric_gets_no_score():
    plan = plan_of(**{"audit.selectors": ["none", "kmeans"]})
    found = choice_of(KIND, around(SELECTORS), plan, "kmeans.tmia_distance.auc", "max")
    assert found.refused == dict.fromkeys(SELECTORS, "kmeans is not among its audit.selectors")


@pytest.mark.parametrize(
    ("changes", "settings", "metric", "said"),
    [
        ({}, SELECTORS, "selected.tmia_distance.advantag", "did you mean 'selected.tmia_distance.advantage'"),
        ({}, SELECTORS, None, "no --metric is given"),
        ({}, {"more": {"split.candidates": 20}}, METRIC, "changes split.candidates, which no attack may choose"),
        ({}, {"more": {"split.attacker_points": 300}}, METRIC, "changes split.attacker_points"),
        ({"split__attacker_points": 220}, SELECTORS, METRIC, "give it 313 or more, or lower split.candidates"),
        ({"audit__beta": 0.09}, SELECTORS, METRIC, "cannot be reached with split.reference_models = 12 and a"),
    ],
)
def test_what_cannot_be_chosen_by_or_rehearsed_is_refused_in_one_line(changes, settings, metric, said):
    with pytest.raises(BadInput, match=said) as refused:
        choice_of(KIND, around(settings), plan_of(**changes), metric, "max")
    assert "\n" not in str(refused.value)


def test_given_targets_are_refused(tmp_path):
    weights = tmp_path / "weights.pt"
    weights.write_bytes(b"")
    plan = plan_of(**{"target": {"weights": str(weights), "members": "0:200"}})
    with pytest.raises(BadInput, match="target is given, and one model tells no gain"):
        choice_of(KIND, around(SELECTORS), plan, METRIC, "max")


def test_refusals_are_one_line_on_the_command_line(capsys):
    words = ["tune", "tmia", "tmia-smoke", "--vary", "audit.selectors=[none],[kmeans]"]
    for more, said in (
        (["--metric", "selected.tmia_distance.advantages"], "did you mean"),
        (["--metric", METRIC, "--vary", "recipe.epochs=1,2"], "changes recipe.epochs"),
        (["--metric", METRIC, "--search", "optuna", "--samples", "2"], "--search optuna chooses settings by what"),
        (["--metric", METRIC, "--scheduler", "asha"], "No such option '--scheduler'"),
    ):
        assert main([*words, *more]) == 2
        told = capsys.readouterr().err
        assert told.count("\n") == 1 and said in told


TRAINED: dict[str, dict[str, Any]] = {
    "never trained": {"recipe.learning_rate": 1e-9, "recipe.epochs": 1},
    "trained": {"recipe.epochs": 60},
}


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("models", TRAINED)
def test_where_nothing_can_be_found_the_chosen_setting_sits_at_chance(models, tmp_path):
    """Sixteen settings, so that the best at selection is well above chance by luck."""
    settings = {
        f"{selector}, {read}": {"audit.selectors": [selector], "audit.reference_samples": read}
        for selector in ("none", "kmeans", "reference_loss", "neighbours")
        for read in (60, 120, 180, 200)
    }
    changes = {
        "audit.attacks": ["tmia_posterior"], "audit.alpha": {"size": 10}, "audit.neighbours.rare": 3.0,
        "audit.selectors": ["none"], "split.targets": 10, "compute.workers": 0,
        "compute.store": str(tmp_path / "store"), **TRAINED[models],
    }  # fmt: skip
    plan = plan_of(**changes)
    choice = choice_of(KIND, around(settings), plan, "selected.tmia_posterior.auc", "max")
    found = tuning(plan, tmp_path / "out").select(choice).to_json()["selection"]
    chosen = found["judged"][0]
    if models == "trained":
        assert chosen["at_selection_low"] > 0.55 and chosen["on_targets_low"] > 0.55
    else:
        assert chosen["at_selection"] > 0.5
        assert chosen["on_targets_low"] < 0.5 < chosen["on_targets_high"]
        assert abs(chosen["on_targets"] - 0.5) < 0.1
