"""Nulls, corrections and the table of results."""

import itertools

import numpy as np
import pytest

from audits.errors import BadInput
from audits.statistics import intervals, null, roc, summary
from tests.cases.apollo_result import score_table


@pytest.fixture(scope="module")
def scores():
    table = score_table(["base"], targets=8, points=50, seed=0)
    return {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}


@pytest.fixture(scope="module")
def rows(scores):
    return summary.summarise(scores, [0.05], bootstrap=500, permutations=500, seed=3)


def pick(rows, unlearner, attack):
    return next(row for row in rows if row["unlearner"] == unlearner and row["attack"] == attack)


def test_permutation_p_agrees_with_full_enumeration():
    scores, member, cluster = (
        np.array([3.0, 1, 2, 2, 5, 4, 0, 1]),
        np.array([1, 0, 1, 0] * 2) == 1,
        np.repeat([0, 1], 4),
    )
    found = abs(roc.within_auc(scores, member, cluster).mean() - 0.5)
    choices = [[list(pair) for pair in itertools.combinations(range(4), 2)]] * 2
    far = []
    for first, second in itertools.product(*choices):
        flags = np.zeros(8, dtype=bool)
        flags[first] = True
        flags[[4 + index for index in second]] = True
        far.append(abs(roc.within_auc(scores, flags, cluster).mean() - 0.5) >= found - 1e-12)
    p = null.permutation_p(scores, member, cluster, draws=20000, seed=1)
    assert p[0] == pytest.approx(np.mean(far), abs=0.01)


def test_permutation_ignores_differences_between_targets_and_is_uniform_under_the_null():
    rng = np.random.default_rng(0)
    member, cluster = np.tile(np.arange(40) < 10, 4), np.repeat(np.arange(4), 40)
    shift = rng.normal(0, 10, 4)[cluster]
    p = null.permutation_p(rng.normal(size=(160, 400)) + shift[:, None], member, cluster, draws=400, seed=2)
    assert np.mean(p <= 0.05) == pytest.approx(0.05, abs=0.03)
    assert np.mean(p) == pytest.approx(0.5, abs=0.05)


def test_groups_are_permuted_whole_so_that_points_that_are_alike_are_no_evidence() -> None:
    rng = np.random.default_rng(0)
    sizes = np.tile([4, 8, 8, 12, 8], 12)  # of the groups of six targets, five inside and five outside
    groups = np.repeat(np.arange(sizes.size), sizes)
    member, cluster = np.repeat(np.arange(sizes.size) % 10 < 5, sizes), groups // 10
    scores = rng.normal(size=(sizes.size, 400))[groups] + 0.3 * rng.normal(size=(groups.size, 400))
    p = null.permutation_p(scores, member, cluster, draws=400, seed=2, groups=groups)
    assert np.mean(p <= 0.05) == pytest.approx(0.05, abs=0.03)
    assert np.mean(null.permutation_p(scores, member, cluster, draws=400, seed=2) <= 0.05) > 0.4
    split = np.where(np.arange(groups.size) == 0, ~member, member)
    with pytest.raises(BadInput, match="membership is by group"):
        null.permutation_p(scores, split, cluster, draws=10, groups=groups)


def test_groups_of_single_points_are_no_groups(scores, rows):
    again = summary.summarise(scores, [0.05], bootstrap=10, permutations=300, seed=3, groups=np.arange(10**5))
    assert [row["auc_p"] for row in again] == pytest.approx([row["auc_p"] for row in rows], abs=0.05)


def test_permutation_p_of_one_column_does_not_depend_on_the_others():
    rng = np.random.default_rng(1)
    columns, member, cluster = rng.normal(size=(40, 3)), np.tile([True, False], 20), np.repeat([0, 1], 20)
    together = null.permutation_p(columns, member, cluster, draws=300, seed=4)
    alone = [null.permutation_p(column, member, cluster, draws=300, seed=4)[0] for column in columns.T]
    np.testing.assert_array_equal(together, alone)


def test_holm_is_the_textbook_procedure():
    np.testing.assert_allclose(null.holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(null.holm([0.9, 0.8]), [1.0, 1.0])
    with pytest.raises(BadInput, match="between 0 and 1"):
        null.holm([0.5, float("nan")])


def test_null_band_of_a_best_threshold_rule_lies_above_one_half():
    rng = np.random.default_rng(5)
    scores, member, cluster = rng.normal(size=(200, 10)), np.tile([True, False], 100), np.zeros(200)

    def best_of_ten(flags):
        return max(roc.auc(column, flags) for column in scores.T)

    band = null.null_band(best_of_ten, member, cluster, draws=100, seed=6)
    assert 0.5 < band.low < band.median < band.high < 0.65
    assert band.value == best_of_ten(member) and 0.01 < band.p <= 1.0


def test_table_row_equals_the_plain_computation(scores, rows):
    row = pick(rows, "gradient_ascent", "lira")
    chosen = (scores["unlearner"] == "gradient_ascent") & (scores["attack"] == "lira")
    value, target = scores["score"][chosen], scores["target"][chosen]
    member = scores["group"][chosen] == "forget"
    areas = [roc.auc(value[target == index], member[target == index]) for index in range(8)]
    decision = scores["decision_0.05"][chosen]
    assert row["auc"] == pytest.approx(np.mean(areas), abs=1e-12)
    assert (row["auc_low"], row["auc_high"]) == pytest.approx(intervals.ibragimov_mueller_t(areas), abs=1e-12)
    assert row["auc_pooled"] == pytest.approx(roc.auc(value, member), abs=1e-12)
    assert row["tpr"] == pytest.approx(decision[member].mean())
    assert row["found_fpr"] == pytest.approx(decision[~member].mean())
    assert row["tpr_exact_low"] < row["tpr"] < row["tpr_exact_high"]
    assert row["auc_bootstrap_low"] < row["auc"] < row["auc_bootstrap_high"]
    assert (row["targets"], row["forget"], row["unseen"], row["queries_per_point"]) == (8, 400, 400, 1.0)


def test_table_tells_signal_from_none(rows):
    assert len(rows) == 35
    assert all(row["above_chance"] for row in rows if row["unlearner"] == "identity")
    assert not any(row["above_chance"] for row in rows if row["unlearner"] == "retrain")
    overview = summary.holm_overview(rows)["base"]
    assert overview["tests"] == 35 and "identity/apollo" in overview["above"]
    assert not any(name.startswith("retrain/") for name in overview["above"] + overview["below"])


def test_table_does_not_depend_on_row_order_and_repeats(scores, rows):
    order = np.random.default_rng(7).permutation(len(scores["score"]))
    shuffled = {name: column[order] for name, column in scores.items()}
    again = summary.summarise(shuffled, [0.05], bootstrap=500, permutations=500, seed=3)

    def key(row):
        return row["unlearner"], row["attack"]

    assert sorted(again, key=key) == sorted(rows, key=key)


def test_table_refuses_an_fpr_without_enough_unseen_points_or_decisions(scores):
    with pytest.raises(BadInput, match="needs at least 1000"):
        summary.summarise(scores, [0.01])
    with pytest.raises(BadInput, match=r"no column 'decision_0\.1'"):
        summary.summarise(scores, [0.1])


def test_one_target_gets_intervals_over_points(scores):
    first = {name: column[scores["target"] == 0] for name, column in scores.items()}
    many = {name: np.concatenate([column] * 4) for name, column in first.items()}
    row = pick(summary.summarise(many, [0.05], bootstrap=50, permutations=50), "identity", "apollo")
    assert row["targets"] == 1 and row["roc_tpr"] is None
    assert row["auc_low"] < row["auc"] < row["auc_high"]
    assert (row["tpr_low"], row["tpr_high"]) == (row["tpr_exact_low"], row["tpr_exact_high"])


def test_paired_difference_compares_equal_targets_only(scores):
    found = {(cell.unlearner, cell.attack): summary.per_target_auc(cell) for cell in summary.cells(scores)}
    a, b = found["identity", "apollo"], found["identity", "label_gap"]
    difference = summary.paired_difference(a, b)
    assert difference.mean == pytest.approx(np.mean([a[index] - b[index] for index in range(8)]))
    assert difference.low > 0 and difference.p < 0.05 and difference.targets == 8
    assert summary.paired_difference(a, a).p == 1.0
    with pytest.raises(BadInput, match="same targets"):
        summary.paired_difference(a, {0: 0.5})


def twins(seed: int, half: np.ndarray, unit: int = 0) -> dict[str, np.ndarray]:
    """Return two targets of complementary halves, whose scores of a point have much in common."""
    rng = np.random.default_rng(seed)
    n = len(half)
    hard = rng.normal(size=n)
    return {
        "setting": np.full(2 * n, "base"),
        "unlearner": np.full(2 * n, "none"),
        "attack": np.full(2 * n, "loss"),
        "access": np.full(2 * n, "posteriors"),
        "pool": np.full(2 * n, unit),
        "target": np.repeat([2 * unit, 2 * unit + 1], n),
        "point_id": np.tile(np.arange(n), 2),
        "group": np.where(np.concatenate([half, ~half]), "forget", "unseen"),
        "score": np.concatenate([hard + 0.3 * rng.normal(size=n) for _ in range(2)]),
        "decision_0.5": np.concatenate([hard > 0, hard > 0]).astype(float),
        "queries": np.ones(2 * n),
    }


def test_permutations_move_a_point_in_both_twins_at_once_as_all_halves_of_the_pool_do() -> None:
    half = np.array([True, True, False, True, False, False, True, False])
    rows = twins(1, half)

    def statistic(one: np.ndarray) -> float:
        first, second = rows["score"][:8], rows["score"][8:]
        return roc.auc(first, one) + roc.auc(second, ~one) - 1.0

    every = [np.isin(np.arange(8), chosen) for chosen in itertools.combinations(range(8), 4)]
    exact = np.mean([abs(statistic(one)) >= abs(statistic(half)) - 1e-12 for one in every])
    member, together = rows["group"] == "forget", (rows["pool"], rows["point_id"])
    found = null.permutation_p(rows["score"], member, rows["target"], draws=20000, seed=1, together=together)[0]
    alone = null.permutation_p(rows["score"], member, rows["target"], draws=20000, seed=1)[0]
    assert found == pytest.approx(exact, abs=0.02)
    assert alone > exact + 0.1  # each twin by itself: what both have in common is taken for luck
    with pytest.raises(BadInput, match="asked about different points"):
        null.permutation_p(rows["score"], member, rows["target"], together=(rows["pool"], np.arange(16)))


def test_intervals_are_over_units_where_targets_share_them() -> None:
    rng = np.random.default_rng(8)
    parts = [twins(unit, rng.permutation(np.repeat([True, False], 20)), unit) for unit in range(4)]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    (row,) = summary.summarise(columns, [0.5], bootstrap=20, permutations=20, unit="pool")
    areas = [
        np.mean([roc.auc(part["score"][own], (part["group"] == "forget")[own]) for own in (slice(40), slice(40, None))])
        for part in parts
    ]
    low, high = intervals.ibragimov_mueller_t(areas)
    assert (row["auc"], row["auc_low"], row["auc_high"]) == pytest.approx((np.mean(areas), max(0, low), min(1, high)))
    calls = [part["decision_0.5"][part["group"] == "unseen"].sum() for part in parts]
    assert (row["found_fpr_low"], row["found_fpr_high"]) == intervals.clustered_rate(calls, [40] * 4)
    (single,) = summary.summarise(parts[0], [0.5], bootstrap=20, permutations=20, unit="pool")
    assert single["auc_low"] < single["auc"] < single["auc_high"]
