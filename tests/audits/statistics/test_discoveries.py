"""False discovery rate control: the procedures, the families, the promise kept, and the exposure list."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from audits.errors import BadInput
from audits.statistics import discoveries, intervals, summary
from audits.statistics.conformal import p_values
from audits.statistics.discoveries import q_values

values = st.lists(st.sampled_from([0.0, 0.001, 0.01, 0.02, 0.2, 0.5, 1.0]), min_size=1, max_size=30)


@settings(max_examples=40)
@given(values, st.sampled_from(["positive", "any"]))
def test_q_values_are_the_textbook_step_up(p, dependence):
    expected = false_discovery_control(p, method="bh" if dependence == "positive" else "by")
    np.testing.assert_allclose(q_values(p, dependence), expected, rtol=1e-12)


@settings(max_examples=40)
@given(values, st.sampled_from([0.05, 0.1, 0.3]))
def test_discoveries_are_the_largest_set_that_the_line_allows(p, fdr):
    ordered = np.sort(p)
    allowed = [k for k in range(1, len(p) + 1) if ordered[k - 1] <= fdr * k / len(p) * (1 + 1e-12)]
    assert int((q_values(p) <= fdr * (1 + 1e-12)).sum()) == max(allowed, default=0)


def test_odd_p_values_and_unknown_dependence_are_refused():
    with pytest.raises(BadInput, match="between 0 and 1"):
        q_values([0.1, float("nan")])
    with pytest.raises(BadInput, match=r"'positiv' \(did you mean 'positive'\?\); allowed: positive, any"):
        q_values([0.1], "positiv")
    assert q_values([]).size == 0


def simulated(rng, shift=1.5):
    """Return p-values of 100 + 100 points against one shared null sample of 2 000, and who is a member."""
    member = np.arange(200) < 100
    return p_values(rng.normal(size=200) + shift * member, rng.normal(size=2000)), member


@pytest.mark.parametrize(("dependence", "shift"), [("positive", 2.5), ("any", 2.5), ("positive", 0.0)])
def test_the_false_discovery_rate_stays_below_the_promise(dependence, shift):
    rng = np.random.default_rng(0)
    shares, power = [], []
    for _ in range(300):
        p, member = simulated(rng, shift)
        found = q_values(p, dependence) <= 0.1
        false = ~member if shift else np.ones(200, bool)
        shares.append((found & false).sum() / max(1, found.sum()))
        power.append((found & member).mean())
    assert np.mean(shares) <= 0.1 + (0.0 if shift else 0.03)  # 300 draws of 0 or 1 where nobody is a member
    assert not shift or np.mean(power) > 0.1


@pytest.fixture(scope="module")
def scores():
    rng = np.random.default_rng(1)
    columns = {name: [] for name in ("setting", "unlearner", "attack", "access", "target", "point_id", "group")}
    columns |= {"label": [], "score": [], "p_value": []}
    groups = ["forget"] * 50 + ["unseen"] * 50 + ["retained"] * 20
    for unlearner, shift in (("scrub", 2.5), ("retrain", 0.0)):
        for attack in ("apollo", "lira"):
            for target in range(4):
                score = rng.normal(size=120) + shift * (np.array(groups) != "unseen")
                rows = {
                    "setting": ["base"] * 120,
                    "unlearner": [unlearner] * 120,
                    "attack": [attack] * 120,
                    "access": ["labels" if attack == "apollo" else "posteriors"] * 120,
                    "target": [target] * 120,
                    "point_id": list(range(1000 * target, 1000 * target + 120)),
                    "group": groups,
                    "label": rng.integers(0, 10, 120).tolist(),
                    "score": score.tolist(),
                    "p_value": p_values(score, rng.normal(size=2000)).tolist(),
                }
                for name, entries in rows.items():
                    columns[name] += entries
    table = {name: np.array(entries) for name, entries in columns.items()}
    return table | {"q_value": discoveries.family_q_values(table)}


def chosen(scores, unlearner, attack):
    return (scores["unlearner"] == unlearner) & (scores["attack"] == attack) & (scores["group"] != "retained")


def test_a_family_is_all_candidates_of_a_method_and_an_attack_without_retained_points(scores):
    rows = chosen(scores, "scrub", "lira")
    np.testing.assert_array_equal(scores["q_value"][rows], q_values(scores["p_value"][rows]))
    assert np.isnan(scores["q_value"][scores["group"] == "retained"]).all()
    order = np.random.default_rng(2).permutation(rows.size)
    again = discoveries.family_q_values({name: column[order] for name, column in scores.items()})
    np.testing.assert_array_equal(again, scores["q_value"][order])


def test_rows_compare_the_promise_with_the_truth(scores):
    rows = {(row["unlearner"], row["attack"]): row for row in discoveries.discovery_rows(scores, 0.1)}
    row, own = rows["scrub", "apollo"], chosen(scores, "scrub", "apollo")
    member = scores["group"][own] == "forget"
    found = q_values(scores["p_value"][own]) <= 0.1
    target = scores["target"][own]
    assert row["discoveries"] == found.sum() > 50 and row["false"] == (found & ~member).sum()
    assert row["fdp"] == pytest.approx((found & ~member).sum() / found.sum())
    assert row["power"] == pytest.approx((found & member).sum() / member.sum())
    hits = [(found & member & (target == index)).sum() for index in range(4)]
    assert (row["power_low"], row["power_high"]) == intervals.clustered_rate(hits, [50] * 4)
    assert row["fdp_low"] <= row["fdp"] <= row["fdp_high"] and row["claimed_fdr"] == 0.1
    nothing = rows["retrain", "apollo"]
    assert nothing["discoveries"] <= 3
    silent = next(row for row in discoveries.discovery_rows(scores, 1e-6) if row["unlearner"] == "retrain")
    assert (silent["discoveries"], silent["fdp"], silent["fdp_low"], silent["fdp_high"]) == (0, 0.0, 0.0, 1.0)


def test_exposed_points_are_forgotten_points_within_the_promise_clearest_first(scores):
    points = discoveries.exposed_points(scores, "apollo", 0.1, "base")
    own = chosen(scores, "scrub", "apollo") & (scores["group"] == "forget") & (scores["q_value"] <= 0.1)
    listed = [(point["target"], point["point_id"]) for point in points if point["unlearner"] == "scrub"]
    assert set(listed) == set(zip(scores["target"][own].tolist(), scores["point_id"][own].tolist(), strict=True))
    p = [point["p"] for point in points if point["unlearner"] == "scrub"]
    assert p == sorted(p) and max(point["q"] for point in points) <= 0.1
    assert discoveries.exposed_points(scores, "apollo", 0.1, "other") == []


def test_the_exposing_attack_is_fixed_by_name():
    assert discoveries.judge_among(["lira", "apollo", "label_gap"]) == "apollo"
    assert discoveries.judge_among(["label_gap", "lira"]) == "label_gap"


def test_tables_of_older_runs_give_no_discoveries(scores):
    old = {name: column for name, column in scores.items() if name not in ("p_value", "q_value")}
    assert discoveries.discovery_rows(old, 0.1) == [] == discoveries.exposed_points(old, "apollo", 0.1, "base")


def test_retained_points_never_enter_the_binary_question(scores):
    binary = {name: column[scores["group"] != "retained"] for name, column in scores.items()}
    for cell, without in zip(summary.cells(scores), summary.cells(binary), strict=True):
        np.testing.assert_array_equal(cell.scores, without.scores)
        assert (~cell.member).sum() == 200
    assert all(len(cell.scores) == 480 for cell in summary.cells(scores, retained=True))
