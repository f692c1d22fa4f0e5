"""The most exposed points: disjoint training sets that are watched, places within each, candidates dealt at random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.apollo.design.exposure import ExposedSplit, exposed_size, points_ranked
from audits.apollo.design.partition import ForgetIds, Partition, Split, make_partition, ranked_pool, ranking_members
from audits.errors import BadInput
from audits.uniqueness.watching import percentile
from tests.cases.families import as_one
from tests.cases.simulations import fewer, sizes

SPLIT = ExposedSplit(
    targets=4,
    train_size=40,
    target_pool=160,
    shadow_pool=200,
    test_pool=60,
    forget=0.2,
    candidates_forget=4,
    candidates_unseen=5,
    candidates_retained=3,
    shadows=8,
    offline_shadows=4,
)

POINTS = 437


def ranking_of(split: Split = SPLIT, seed: int = 0) -> np.ndarray:
    scores = np.full(POINTS, np.nan)
    for member in ranking_members(POINTS, split, seed):
        scores[member.train] = percentile(np.random.default_rng([seed, member.index]).random(len(member.train)))
    return scores


def design(split: Split = SPLIT, seed: int = 0) -> Partition:
    return make_partition(POINTS, split, seed, ranking=ranking_of(split, seed))


@settings(max_examples=40)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=30))
def test_a_percentile_counts_points_below_and_half_of_equal_ones(values: list[int]) -> None:
    found = percentile(values)
    for value, share in zip(values, found, strict=True):
        counted = sum(1.0 if other < value else 0.5 if other == value else 0.0 for other in values)
        assert share == pytest.approx(counted / len(values), abs=1e-12)


def test_whole_training_sets_are_ranked_as_many_as_the_pool_holds_and_the_plan_allows() -> None:
    assert exposed_size(SPLIT) == 4 * 40  # 160 + 4 · 5 points hold four sets of 40
    assert exposed_size(replace(SPLIT, target_pool=180)) == 5 * 40
    assert exposed_size(replace(SPLIT, ranking_models=2)) == 2 * 40
    assert exposed_size(replace(SPLIT, target_pool=4000, test_pool=100)) == 32 * 40  # not more than ranking_models


def test_each_ranked_point_is_in_one_model_and_none_is_the_attackers() -> None:
    pool, members, partition = ranked_pool(POINTS, SPLIT, 0), ranking_members(POINTS, SPLIT, 0), design()
    assert [len(member.train) for member in members] == [40] * 4
    np.testing.assert_array_equal(np.sort(np.concatenate([member.train for member in members])), np.sort(pool))
    assert {(member.role, member.shadow_set, len(member.forget)) for member in members} == {("ranking", -1, 0)}
    assert any(not np.array_equal(member.train, pool[40 * i : 40 * (i + 1)]) for i, member in enumerate(members))
    asked = np.concatenate([entry.ids for entry in partition.candidates])
    shadows = np.concatenate([member.train for member in partition.members if member.role != "target"])
    assert not np.isin(pool, np.setdiff1d(shadows, asked)).any()
    assert not np.isin(pool, partition.test).any()


def test_candidates_are_the_top_of_all_models_and_no_target_trains_on_the_unseen_ones() -> None:
    partition, scores = design(), ranking_of()
    asked = np.concatenate([entry.ids for entry in partition.candidates])
    assert len(np.unique(asked)) == len(asked) == 4 * 12
    np.testing.assert_array_equal(np.sort(scores[asked]), np.sort(scores[~np.isnan(scores)])[-48:])
    for member in ranking_members(POINTS, SPLIT, 0):
        assert np.isin(member.train, asked).sum() == 12, "places within a model give each the same share"
    trained = np.concatenate([member.train for member in partition.members if member.role == "target"])
    unseen = np.concatenate([entry.ids[entry.unseen] for entry in partition.candidates])
    assert len(unseen) == 20 and not np.isin(unseen, trained).any()
    for entry in partition.candidates:
        assert [int((entry.group == code).sum()) for code in range(3)] == [4, 5, 3]


@sizes(0.1)
def test_groups_are_dealt_without_regard_to_exposure(size: float) -> None:
    gaps = []
    for seed in range(fewer(100, size)):
        partition, scores = design(seed=seed), ranking_of(seed=seed)
        ids, forgotten = (
            np.concatenate([getattr(entry, name) for entry in partition.candidates]) for name in ("ids", "forgotten")
        )
        place = np.argsort(np.argsort(scores[ids]))
        gaps.append(place[forgotten].mean() - place[~forgotten].mean())
    assert abs(np.mean(gaps)) < 1.3 / np.sqrt(
        size
    )  # s.e. .4 of 100 designs; exposed points forgotten and others unseen would give 24


@as_one(
    "change, says",
    [
        ({"ranking_models": 1}, "48 candidates .* more than the 40 points that are ranked; raise split.ranking_models"),
        ({"target_pool": 25, "targets": 2}, "35 points can be ranked, but a model trains on 40; raise .* by 5"),
        ({"target_pool": 60}, "32 points are left to train on, but a target needs 33"),
        ({"forget": ForgetIds(tuple(range(8)))}, "give a fraction to forget"),
    ],
)
def test_rankings_that_cannot_be_made_are_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=rf"^split\.points is exposed.*{says}"):
        points_ranked(replace(SPLIT, **change))  # type: ignore[arg-type]  # fields of its own


def test_a_missing_or_short_ranking_is_refused() -> None:
    with pytest.raises(BadInput, match=r"^split\.points is exposed, but no ranking of the points was given"):
        make_partition(POINTS, SPLIT, 0)
    short = ranking_of()
    short[ranked_pool(POINTS, SPLIT, 0)[40:]] = np.nan
    with pytest.raises(BadInput, match=r"^split\.points is exposed: 40 points are ranked, 48 candidates are needed"):
        make_partition(POINTS, SPLIT, 0, ranking=short)
