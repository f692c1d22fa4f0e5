"""The table of scores and its cells: against loops over rows, at the edges, and under the null hypothesis."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from audits.errors import BadInput
from audits.statistics.precision import measure, measure_null
from audits.tmia.attacks import ATTACKS, JudgeSettings
from audits.tmia.cells import cells, scores_rows
from audits.tmia.p_values import rank_p, smoothed_p
from tests.audits.tmia.made_up_answers import Scene, synthetic_answers
from tests.cases.simulations import fewer, sizes

BETA = 0.1
SHOWN = ("tmia_distance", "tmia_posterior", "tmia_smoothed", "pmia", "yeom", "label_gap", "gmia3")
RATES = ("precision", "coverage", "fpr")


@cache
def scene(failed: float = 0.05, **settings: Any) -> Scene:
    return synthetic_answers(2, asked=40, failed=failed, **settings)


def table(made: Scene, names: tuple[str, ...] = SHOWN, beta: float = BETA) -> dict[str, np.ndarray]:
    rulings = {name: ATTACKS[name]().judge(made.answers, JudgeSettings(beta), seed=5) for name in names}
    selected = {"none": np.ones(60, bool), "hard": made.hard, "nobody": np.zeros(60, bool)}
    return scores_rows(rulings, made.membership, made.point_ids, made.label, selected, made.asked)


@cache
def usual() -> dict[str, np.ndarray]:
    return table(scene())


@cache
def usual_cells() -> list[dict[str, Any]]:
    return cells(usual(), selectors=["none", "hard", "nobody"], beta=BETA, draws=30, seed=4)


def cell(found: list[dict[str, Any]], selection: str, attack: str) -> dict[str, Any]:
    (only,) = [row for row in found if (row["selection"], row["attack"]) == (selection, attack)]
    return only


# ------------------------------------------------------------------------------------------------- the table of scores


def test_the_table_has_a_row_for_each_attack_model_and_candidate() -> None:
    made, columns = scene(), usual()
    kinds = {
        **dict.fromkeys(("attack", "access", "group"), object),
        **dict.fromkeys(("model", "candidate", "queries"), np.int32),
        **dict.fromkeys(("point_id", "label"), np.int64),
        **dict.fromkeys(("statistic", "p"), np.float64),
        **dict.fromkeys(("member", "decision", "asked", "q_none", "q_hard", "q_nobody"), bool),
    }
    assert {name: values.dtype for name, values in columns.items()} == kinds
    assert len({len(values) for values in columns.values()}) == 1
    found = {}
    for row in zip(*columns.values(), strict=True):
        one = dict(zip(columns, row, strict=True))
        key = one["attack"], one["group"], one["model"], one["candidate"]
        assert key not in found
        found[key] = one
    for name in SHOWN:
        ruling = ATTACKS[name]().judge(made.answers, JudgeSettings(BETA), seed=5)
        for group, models in (("target", 6), ("null", 8), ("reference", 40 if ATTACKS[name].ranked else 0)):
            for model in range(models):
                for place, candidate in enumerate(ruling.rows):
                    one = found.pop((name, group, model, candidate))
                    assert one["statistic"] == pytest.approx(ruling.statistic[group][model, place], nan_ok=True)
                    p = math.nan if ruling.p is None or group == "reference" else ruling.p[group][model, place]
                    assert one["p"] == pytest.approx(p, nan_ok=True)
                    assert one["decision"] == (group != "reference" and ruling.decision[group][model, place])
                    assert one["member"] == (group == "target" and made.membership[model, candidate])
                    assert (one["point_id"], one["label"]) == (made.point_ids[candidate], made.label[candidate])
                    assert (one["asked"], one["q_hard"]) == (made.asked[candidate], made.hard[candidate])
                    assert (one["access"], one["queries"]) == (ATTACKS[name].access, ruling.queries)
    assert not found


# ----------------------------------------------------------------------------------------------------------- the cells


def slow_cell(columns: dict[str, np.ndarray], attack: str, selection: str) -> dict[str, Any]:
    """Count and rate one cell by a loop over the rows of the table."""
    counts = dict.fromkeys(
        ("true_positives", "false_positives", "members", "non_members", "failed", "null_pairs"), 0
    ) | {"null_false_positives": 0}
    candidates, scores = set(), {}
    own = {name: values[columns["attack"] == attack] for name, values in columns.items()}
    for row in zip(*own.values(), strict=True):
        one = dict(zip(own, row, strict=True))
        taken = selection == "all" or (one["asked"] and one[f"q_{selection}"])
        if not taken:
            continue
        if one["group"] == "target":
            candidates.add(one["candidate"])
            counts["true_positives"] += one["decision"] and one["member"]
            counts["false_positives"] += one["decision"] and not one["member"]
            counts["members"] += one["member"]
            counts["non_members"] += not one["member"]
            counts["failed"] += math.isnan(one["statistic"])
            score = -one["p"] if ATTACKS[attack].ranked else one["statistic"]
            score = -math.inf if math.isnan(score) else score
            scores.setdefault(one["model"], {True: [], False: []})[bool(one["member"])].append(score)
        elif one["group"] == "null":
            counts["null_pairs"] += 1
            counts["null_false_positives"] += one["decision"]
    aucs = [np.mean([(a > b) + 0.5 * (a == b) for a in both[True] for b in both[False]]) for both in scores.values()]
    called = counts["true_positives"] + counts["false_positives"]
    return {
        **counts,
        "candidates": len(candidates),
        "precision": counts["true_positives"] / called if called else None,
        "coverage": counts["true_positives"] / counts["members"],
        "fpr": counts["false_positives"] / counts["non_members"],
        "null_fpr": counts["null_false_positives"] / counts["null_pairs"],
        "auc": np.mean(aucs),
    }


def test_cells_are_those_of_a_loop_over_rows() -> None:
    found = usual_cells()
    wanted = [(selection, name) for selection in ("none", "hard", "nobody") for name in SHOWN]
    wanted += [("all", name) for name in SHOWN if ATTACKS[name].access == "posteriors"]
    assert [(row["selection"], row["attack"]) for row in found] == wanted
    for row in found:
        if row["selection"] != "nobody":
            slow = slow_cell(usual(), row["attack"], row["selection"])
            assert {name: row[name] for name in slow} == pytest.approx(slow, abs=1e-12)
            assert (row["targets"], row["null_models"], row["beta"]) == (6, 8, BETA)
    under = [row for row in found if row["selection"] == "hard"]
    assert {row["candidates"] for row in under} == {int((scene().asked & scene().hard).sum())}
    assert {row["candidates"] for row in found if row["selection"] == "all"} == {60}
    assert cell(found, "none", "tmia_distance")["failed"] > 0 == cell(found, "none", "pmia")["failed"]


@pytest.mark.parametrize("name", ["tmia_distance", "tmia_smoothed", "yeom"])
def test_intervals_are_those_of_p_values_taken_anew_in_every_draw(name: str) -> None:
    made = scene()
    ruling = ATTACKS[name]().judge(made.answers, JudgeSettings(BETA), seed=5)
    order = np.argsort(ruling.rows)
    kept = order[(made.asked & made.hard)[ruling.rows[order]]]
    member = made.membership[:, ruling.rows[kept]]
    p_value = smoothed_p if name == "tmia_smoothed" else rank_p

    def decide(rows: np.ndarray, group: str) -> np.ndarray:
        if name == "yeom":
            return ruling.decision[group][:, kept]
        reference = ruling.statistic["reference"][:, kept][rows]
        return p_value(ruling.statistic[group][:, kept], reference, True) <= BETA

    n_ref = 1 if name == "yeom" else 40
    slow = measure(lambda rows: decide(rows, "target"), n_ref, member, BETA, draws=30, seed=4)
    null = measure_null(lambda rows: decide(rows, "null"), n_ref, BETA, draws=30, seed=4).fpr
    found = cell(usual_cells(), "hard", name)
    for rate in RATES:
        for end in ("low", "high", "t_low", "t_high"):
            assert found[f"{rate}_{end}"] == pytest.approx(getattr(getattr(slow, rate), end), abs=1e-12)
    assert (found["null_fpr_low"], found["null_fpr_high"]) == pytest.approx((null.low, null.high), abs=1e-12)
    assert found["precision_low"] < found["precision"] <= found["precision_high"]


def test_cells_do_not_depend_on_the_order_of_the_rows() -> None:
    columns = {name: values[usual()["attack"] != "gmia3"] for name, values in usual().items()}
    order = np.random.default_rng(0).permutation(len(columns["p"]))
    mixed = {name: values[order] for name, values in columns.items()}
    found = {(row["selection"], row["attack"]): row for row in cells(mixed, selectors=["hard"], beta=BETA, draws=5)}
    for row in cells(columns, selectors=["hard"], beta=BETA, draws=5):
        assert found.pop((row["selection"], row["attack"])) == row
    assert not found


def test_levels_and_expected_false_positives_belong_to_attacks_that_promise_a_rate() -> None:
    for row in usual_cells():
        name = row["attack"]
        promises = ATTACKS[name].ranked or (name == "gmia3" and row["selection"] in ("all", "none"))
        assert row["expected_false_positives"] == (pytest.approx(BETA * row["non_members"]) if promises else None)
        assert row["null_expected"] == (pytest.approx(BETA * row["null_pairs"]) if promises else None)
        assert row["attained"] == (4 / 41 if name in ("tmia_distance", "tmia_posterior") else None)


def test_a_selection_of_nobody_has_counts_of_zero_and_no_rates() -> None:
    for name in SHOWN:
        row = cell(usual_cells(), "nobody", name)
        counts = ("candidates", "true_positives", "false_positives", "members", "non_members", "failed")
        null = ("null_candidates", "null_false_positives", "null_pairs")
        assert {row[key] for key in (*counts, *null)} == {0}
        rates = [key for key in row if key.startswith((*RATES, "auc", "null_fpr"))]
        assert len(rates) == 21 and {row[key] for key in rates} == {None}
        assert (row["targets"], row["null_models"]) == (6, 8)


def test_precision_without_a_decision_is_undefined() -> None:
    columns = dict(usual())
    ranked = columns["attack"] == "tmia_distance"
    columns = {name: values[ranked] for name, values in columns.items()}
    own = columns["group"] != "reference"
    columns["statistic"] = np.where(own, -100.0, columns["statistic"])
    columns["p"], columns["decision"] = np.where(own, 1.0, np.nan), np.zeros(len(own), bool)
    row = cell(cells(columns, selectors=["none"], beta=BETA, draws=20), "none", "tmia_distance")
    assert row["precision"] is row["precision_low"] is row["precision_t_high"] is None
    assert row["coverage"] == row["fpr"] == row["null_fpr"] == 0.0 < row["fpr_high"]
    assert row["auc"] == 0.5


def test_the_auc_leaves_out_targets_of_one_kind() -> None:
    columns = dict(usual())
    columns["member"] = columns["member"] | (columns["model"] < 5) & (columns["group"] == "target")
    row = cell(cells(columns, selectors=["none"], beta=BETA, draws=3), "none", "yeom")
    assert 0 < row["auc"] < 1 and row["auc_low"] is row["auc_high"] is None
    columns["member"] = columns["group"] == "target"
    row = cell(cells(columns, selectors=["none"], beta=BETA, draws=3), "none", "yeom")
    assert row["auc"] is row["fpr"] is None and row["precision"] == 1.0


def test_without_null_models_the_control_is_empty() -> None:
    made = synthetic_answers(2, null=0, asked=40)
    found = cells(table(made, ("tmia_distance", "yeom")), selectors=["none"], beta=BETA, draws=10)
    for row in found:
        assert (row["null_models"], row["null_pairs"], row["null_fpr"]) == (0, 0, None)
        assert row["fpr"] is not None


def test_failed_points_count_as_asked_and_are_never_called() -> None:
    made = scene()
    distance = {group: values.copy() for group, values in made.answers.labels.distance.items()}
    distance["target"][:, 3] = distance["reference"][:, 5] = np.nan
    labels = replace(made.answers.labels, distance=distance)
    columns = table(replace(made, answers=replace(made.answers, labels=labels)), ("tmia_distance", "tmia_smoothed"))
    found = cells(columns, selectors=["none"], beta=BETA, draws=10)
    gone = np.isnan(distance["target"])
    gone[:, 5] = True
    for row in found:
        assert row["failed"] == gone.sum() > 12
        assert row["members"] + row["non_members"] == 6 * 40
        slow = slow_cell(columns, row["attack"], "none")
        assert row["true_positives"] == slow["true_positives"] and row["auc"] == pytest.approx(slow["auc"])


@pytest.mark.long
@sizes(0.2)
def test_under_the_null_hypothesis_the_rates_are_the_promised_ones(size: float) -> None:
    made = synthetic_answers(6, targets=10, null=10, lift=0.0)
    for row in cells(table(made, ("tmia_distance", "pmia")), selectors=["none"], beta=BETA, draws=fewer(1000, size)):
        assert row["fpr_low"] < BETA < row["fpr_high"] and row["null_fpr_low"] < BETA < row["null_fpr_high"]
        assert row["precision_low"] < 0.5 < row["precision_high"] and row["auc_low"] < 0.5 < row["auc_high"]


# ----------------------------------------------------------------------------------------------------------- refusals


def test_a_table_of_another_level_or_with_rows_missing_or_twice_is_refused() -> None:
    columns = {name: values[usual()["attack"] == "tmia_distance"] for name, values in usual().items()}
    with pytest.raises(BadInput, match=r"not those at beta = 0\.2"):
        cells(columns, selectors=["none"], beta=0.2, draws=3)
    for rows in (np.arange(1, len(columns["p"])), np.r_[0, np.arange(len(columns["p"]))], np.r_[1, 1:200]):
        with pytest.raises(BadInput, match="lacks or repeats rows of tmia_distance"):
            cells({name: values[rows] for name, values in columns.items()}, selectors=["none"], beta=BETA, draws=3)
