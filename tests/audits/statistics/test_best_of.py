"""The best of several settings, beside the largest AUC of all relabelings, and its p-value where nothing is there."""

import itertools

import numpy as np
import pytest

from audits.errors import BadInput
from audits.statistics.best_of import best_settings
from audits.statistics.null import permutation_p
from audits.statistics.roc import within_auc
from audits.statistics.summary import Cell
from tests.cases.simulations import fewer, sizes


def cell(setting, scores, member, target, point, attack="apollo", **columns):
    group = np.where(member, "forget", "unseen")
    return Cell(
        setting,
        "scrub",
        attack,
        {"score": np.asarray(scores, float), "group": group, "target": target, "point_id": point, **columns},
    )


def exchanged(member, blocks):
    """Every way to deal the labels of ``member`` (n,) anew, blocks of places as a whole."""
    return [
        np.isin(np.arange(len(member)), np.concatenate([blocks[place] for place in chosen]))
        for chosen in itertools.combinations(range(len(blocks)), sum(bool(member[block[0]]) for block in blocks))
    ]


def largest(cells, dealings):
    """The largest AUC of the cells at each of ``dealings``: one labelling for each cell."""
    return np.array(
        [
            max(within_auc(each.scores, flags, each.target).mean() for each, flags in zip(cells, dealing, strict=True))
            for dealing in dealings
        ]
    )


def check(cells, dealings, **options):
    """Compare with all relabelings; quantiles of so few values may fall on either side of a step."""
    (best,) = best_settings(cells, draws=20000, seed=1, level=0.9, **options)
    found = max(within_auc(each.scores, each.member, each.target).mean() for each in cells)
    drawn = np.repeat(largest(cells, dealings), 1000)
    assert (best.auc, best.settings) == (pytest.approx(found), len(cells))
    for value, level in ((best.median, 0.5), (best.high, 0.9)):
        assert np.quantile(drawn, level - 0.02) - 1e-9 <= value <= np.quantile(drawn, level + 0.02) + 1e-9
    assert best.p == pytest.approx(np.mean(drawn >= found - 1e-12), abs=0.012)
    return best


MEMBER, TARGET, POINT = np.array([True, False, True, False] * 2), np.repeat([0, 1], 4), np.arange(8)
SCORES = np.array([[3.0, 1, 2, 2, 5, 4, 0, 1], [3.0, 1, 1, 2, 5, 4, 1, 1], [1.0, 2, 2, 2, 0, 4, 7, 1]])
SINGLE = [[place] for place in range(4)]


def test_settings_that_judge_the_same_points_share_the_relabelings() -> None:
    cells = [cell(name, scores, MEMBER, TARGET, POINT) for name, scores in zip("abc", SCORES[::-1], strict=True)]
    halves = exchanged(MEMBER[:4], SINGLE)
    labels = [np.concatenate(pair) for pair in itertools.product(halves, halves)]
    assert check(cells, ([flags] * 3 for flags in labels)).setting == "c"


def test_a_setting_with_other_points_has_relabelings_of_its_own() -> None:
    others = POINT + 100
    cells = [cell("a", SCORES[0], MEMBER, TARGET, POINT), cell("b", SCORES[2], MEMBER, TARGET, others)]
    halves = exchanged(MEMBER[:4], SINGLE)
    labels = [np.concatenate(pair) for pair in itertools.product(halves, halves)]
    check(cells, itertools.product(labels, labels))


def test_groups_are_permuted_whole() -> None:
    sizes = [2, 1, 1, 2]
    group = np.repeat(np.arange(4), sizes)
    member, target = np.isin(group, [0, 2]), np.zeros(6, int)
    scores = np.array([[6.0, 3, 4, 2, 1, 5], [1.0, 3, 4, 2, 6, 5]])
    cells = [cell(name, each, member, target, np.arange(6)) for name, each in zip("ab", scores, strict=True)]
    blocks = [np.flatnonzero(group == name) for name in range(4)]
    check(cells, ([flags] * 2 for flags in exchanged(member, blocks)), groups=group)
    with pytest.raises(BadInput, match="membership is by group"):
        best_settings(cells, draws=10, groups=np.zeros(6, int))


def test_twins_of_a_pool_move_their_points_together() -> None:
    point, pool = np.tile(np.arange(4), 2), np.zeros(8, int)
    member = np.concatenate([MEMBER[:4], ~MEMBER[:4]])
    cells = [cell(name, each, member, TARGET, point, pool=pool) for name, each in zip("ab", SCORES[1:], strict=True)]
    labels = [np.concatenate([flags, ~flags]) for flags in exchanged(MEMBER[:4], SINGLE)]
    check(cells, ([flags] * 2 for flags in labels), unit="pool")
    with pytest.raises(BadInput, match="different points"):
        best_settings([cell(name, SCORES[0], member, TARGET, POINT, pool=pool) for name in "a"] + cells, unit="pool")


def test_only_settings_that_differ_are_a_choice_and_attacks_are_judged_apart() -> None:
    same = [cell(name, SCORES[0], MEMBER, TARGET, POINT, attack="single_query") for name in "ab"]
    one = [cell("a", SCORES[0], MEMBER, TARGET, POINT, attack="u_lira")]
    two = [cell(name, scores, MEMBER, TARGET, POINT) for name, scores in zip("ab", SCORES, strict=False)]
    assert [(each.attack, each.setting) for each in best_settings([*same, *one, *two], draws=50)] == [("apollo", "a")]


@sizes(0.2)
def test_under_the_null_p_is_uniform_or_larger_and_the_best_settings_own_p_is_not(size: float) -> None:
    """Fourteen settings of correlated scores, those of the last four about other points, and nothing to see."""
    rng = np.random.default_rng(0)
    member, target, point = np.tile(np.arange(20) < 10, 2), np.repeat([0, 1], 20), np.arange(40)
    honest, naive = [], []
    runs = fewer(300, size)
    for again in range(runs):
        scores = rng.normal(size=40) + rng.normal(size=(14, 40))
        places = [point] * 10 + [point + 40] * 4
        cells = [cell(str(each), scores[each], member, target, places[each]) for each in range(14)]
        (best,) = best_settings(cells, draws=199, seed=again)
        honest.append(best.p)
        naive.append(permutation_p(scores[int(best.setting)], member, target, draws=199, seed=again)[0])
    for promised in (0.05, 0.1, 0.25, 0.5):  # 300 draws: a share is off by more than .03 to .075 once in a hundred runs
        error = 2.6 * np.sqrt(promised * (1 - promised) / runs)
        assert np.mean(np.array(honest) <= promised) <= promised + error
        assert np.mean(np.array(honest) <= promised) >= promised - error
    assert np.mean(np.array(naive) <= 0.05) > 0.15
