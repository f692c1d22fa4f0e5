"""Cells of one given model: counts by a loop, attacks that judge again without some reference models, intervals."""

from __future__ import annotations

import numpy as np
import pytest

from audits.statistics.one_target import one_target_auc, one_target_rate
from audits.tmia.again import judge_without, kept_in_turn
from audits.tmia.attacks import ATTACKS, JudgeSettings
from audits.tmia.cells import Tested, scores_rows
from audits.tmia.given_cells import given_cells
from audits.tmia.shared_pool import NO_CORRECTION
from tests.audits.tmia.made_up_answers import BETA, OLDER, RANKED, Scene, ruling, scene, synthetic_answers
from tests.audits.tmia.test_rank_attacks import slow_p
from tests.cases.families import thinned

TESTED = Tested(BETA, NO_CORRECTION, 0.95, 20, 0)


def judged_again(name: str, made: Scene, beta: float = BETA) -> list:
    models = len(made.answers.labels.predicted["reference"])
    return [judge_without(ATTACKS[name], made.answers, JudgeSettings(beta), 5, kept) for kept in kept_in_turn(models)]


def cells_of(made: Scene, *names: str, tested: Tested = TESTED) -> tuple[list, list]:
    rulings = {name: ruling(name, made.answers, tested.beta) for name in names}
    again = {name: judged_again(name, made, tested.beta) for name in names}
    columns = scores_rows(rulings, made.membership, made.point_ids, made.label, {"hard": made.hard}, made.asked)
    return given_cells(columns, rulings, again, ["hard"], tested)


@pytest.mark.usefixtures("few_epochs")
@pytest.mark.parametrize(
    "name",
    thinned(
        [*RANKED, *(name for name in OLDER if name != "lira_oracle")],
        [name for name in (*RANKED, *OLDER) if name not in ("lira_oracle", "gmia1", "fmia", "nasr")],
    ),
)
def test_every_attack_judges_again_without_some_reference_models(name: str) -> None:
    made = scene(asked=40, failed=0.05)
    whole = ruling(name, made.answers)
    again = [judge_without(ATTACKS[name], made.answers, JudgeSettings(BETA), 5, kept) for kept in kept_in_turn(40)[:2]]
    for each in again:
        np.testing.assert_array_equal(each.rows, whole.rows)
        assert each.decision["target"].shape == whole.decision["target"].shape
    if whole.p is not None:
        first, second = (each.p["target"] for each in again)
        assert not np.array_equal(first, second, equal_nan=True)


def test_a_rank_without_some_models_is_that_among_the_others() -> None:
    made = scene(asked=40, failed=0.05)
    kept = np.flatnonzero(np.arange(40) % 10 != 3)
    found = judged_again("tmia_distance", made)[3]
    labels = made.answers.labels
    for place, own in enumerate(labels.distance["target"][0]):
        p = slow_p(own, labels.distance["reference"][kept, place])
        assert found.p["target"][0, place] == pytest.approx(p, abs=1e-12, nan_ok=True)


def test_so_few_models_that_beta_is_out_of_reach_are_tested_at_what_they_reach() -> None:
    made = synthetic_answers(1, reference=9)
    assert ruling("tmia_distance", made.answers, 0.1).decision["target"].any()
    assert all(each.decision["target"].any() for each in judged_again("tmia_distance", made, 0.1))


@pytest.mark.parametrize("name", ["tmia_distance", "yeom"])
def test_numbers_of_the_given_model_and_its_controls_are_those_of_a_loop(name: str) -> None:
    made = scene(asked=40, failed=0.05)
    given, controls = cells_of(made, name)
    assert [cell["selection"] for cell in given] == (["hard"] if name == "tmia_distance" else ["hard", "all"])
    assert [cell["control"] for cell in controls[:5]] == [0, 1, 2, 3, 4]
    said, again = ruling(name, made.answers), judged_again(name, made)
    for model, cell in enumerate([given[0], *controls[:5]]):
        places = [place for place, row in enumerate(said.rows) if made.hard[row] and made.asked[row]]
        member = np.array([made.membership[model, said.rows[place]] for place in places])
        called = np.array([said.decision["target"][model, place] for place in places])
        assert cell["candidates"] == len(places)
        assert cell["true_positives"] == sum(called & member) and cell["false_positives"] == sum(called & ~member)
        without = [each.decision["target"][model, places] for each in again]
        wanted = one_target_rate(called[~member].astype(float), [one[~member].astype(float) for one in without])
        assert (cell["fpr"], cell["fpr_low"], cell["fpr_high"]) == pytest.approx(wanted)
        if called.any():
            wanted = one_target_rate(member[called].astype(float), [member[one].astype(float) for one in without])
            assert (cell["precision"], cell["precision_low"], cell["precision_high"]) == pytest.approx(wanted)
        assert cell["resampled"] == "points and reference models"
    assert given[0]["targets"] == 1 and given[0]["null_models"] == 8 and "null_models" not in controls[0]


def test_reference_models_widen_the_interval_of_an_auc() -> None:
    made = scene()
    (cell,) = [one for one in cells_of(made, "tmia_posterior")[0] if one["selection"] == "all"]
    score = -ruling("tmia_posterior", made.answers).p["target"][0]
    value, low, high = one_target_auc(score, made.membership[0])
    assert cell["auc"] == value
    assert cell["auc_low"] < low < high < cell["auc_high"]


def test_nothing_is_said_of_a_selection_of_nobody() -> None:
    made = scene()
    rulings = {"yeom": ruling("yeom", made.answers)}
    nobody = np.zeros(len(made.label), bool)
    columns = scores_rows(rulings, made.membership, made.point_ids, made.label, {"none": nobody}, made.asked)
    given, _ = given_cells(columns, rulings, {"yeom": []}, ["none"], TESTED)
    assert given[0]["candidates"] == given[0]["members"] == 0
    assert given[0]["precision"] is given[0]["auc"] is given[0]["fpr_low"] is None
    assert {cell["resampled"] for cell in given} == {"points"}


@pytest.mark.long
def test_intervals_hold_the_truth_about_one_model_over_points_and_reference_models() -> None:
    """One model, many audits of it with other points and other reference models."""
    repeats, level = 120, 0.9
    found = {"fpr": [], "coverage": [], "auc": []}
    for seed in range(repeats):
        made = synthetic_answers(seed, targets=1, reference=40, null=2, candidates=300)
        tested = Tested(BETA, NO_CORRECTION, level, 20, 0)
        (cell,) = [one for one in cells_of(made, "tmia_posterior", tested=tested)[0] if one["selection"] == "all"]
        for name, rows in found.items():
            rows.append((cell[name], cell[f"{name}_low"], cell[f"{name}_high"]))
    for rows in found.values():
        values, low, high = np.array(rows).T
        held = ((low <= values.mean()) & (values.mean() <= high)).mean()
        assert held >= level - 0.06
