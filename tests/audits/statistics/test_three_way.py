"""Forgotten, retained or unseen: confusion, accuracy and pairwise AUCs against plain loops."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from audits.errors import BadInput
from audits.statistics.roc import auc
from audits.statistics.three_way import COLUMNS, GROUPS, three_way_rows

POINTS, TARGETS = 30, 4


@pytest.fixture(scope="module")
def scores():
    """Return a table of two attacks: one with log-odds that favour the truth, one without log-odds."""
    rng = np.random.default_rng(0)
    count = TARGETS * 3 * POINTS
    truth = np.tile(np.repeat(np.arange(3), POINTS), TARGETS)
    table = {
        "setting": np.full(2 * count, "base"),
        "unlearner": np.full(2 * count, "scrub"),
        "attack": np.repeat(["three", "two"], count),
        "access": np.full(2 * count, "labels"),
        "target": np.tile(np.repeat(np.arange(TARGETS), 3 * POINTS), 2),
        "point_id": np.tile(np.arange(count), 2),
        "group": np.tile(np.array(GROUPS)[truth], 2),
    }
    odds = rng.normal(size=(count, 3)) + 1.2 * np.eye(3)[truth]
    for place, name in enumerate(COLUMNS):
        table[name] = np.concatenate([odds[:, place], np.full(count, np.nan)])
    return table


def test_rows_equal_plain_loops(scores):
    (row,) = three_way_rows(scores)
    assert (row["attack"], row["groups"], row["points"]) == ("three", list(GROUPS), [TARGETS * POINTS] * 3)
    own = scores["attack"] == "three"
    odds = np.stack([scores[name][own] for name in COLUMNS], axis=1)
    group, target = scores["group"][own], scores["target"][own]
    confusion, accuracies = np.zeros((3, 3)), []
    for line, name in enumerate(GROUPS):
        for values in odds[group == name]:
            confusion[line, int(np.argmax(values))] += 1 / (TARGETS * POINTS)
    for index in range(TARGETS):
        shares = [np.mean(odds[(group == name) & (target == index)].argmax(1) == i) for i, name in enumerate(GROUPS)]
        accuracies.append(np.mean(shares))
    np.testing.assert_allclose(row["confusion"], confusion, atol=1e-12)
    np.testing.assert_allclose(np.sum(row["confusion"], axis=1), 1.0)
    expected = ttest_1samp(accuracies, 0).confidence_interval()
    assert row["balanced_accuracy"] == pytest.approx(np.mean(accuracies))
    assert row["balanced_accuracy_low"] == pytest.approx(expected.low)
    assert np.less_equal(row["confusion_low"], row["confusion"]).all()
    assert np.less_equal(row["confusion"], row["confusion_high"]).all()
    for pair in row["pairs"]:
        i, j = (GROUPS.index(name) for name in pair["groups"])
        areas = []
        for index in range(TARGETS):
            rows = (target == index) & np.isin(group, pair["groups"])
            areas.append(auc(odds[rows, i] - odds[rows, j], group[rows] == GROUPS[i]))
        assert pair["auc"] == pytest.approx(np.mean(areas)) and pair["auc"] > 0.6
    assert [pair["groups"] for pair in row["pairs"]] == [
        ["forget", "retained"],
        ["forget", "unseen"],
        ["retained", "unseen"],
    ]


def test_tables_without_log_odds_or_retained_points_give_no_rows(scores):
    assert three_way_rows({name: column for name, column in scores.items() if name not in COLUMNS}) == []
    binary = {name: column[scores["group"] != "retained"] for name, column in scores.items()}
    assert three_way_rows(binary) == []


def test_half_a_column_of_log_odds_is_refused(scores):
    torn = {name: column.copy() for name, column in scores.items()}
    torn["score_forget"][3] = np.nan
    with pytest.raises(BadInput, match="log-odds are missing for some points"):
        three_way_rows(torn)
