"""The most memorised points: a balanced ranking population, the gap, and candidates that are dealt at random."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.apollo.design.memorisation import memorisation, ranked_size
from audits.apollo.design.partition import ForgetIds, Partition, Split, make_partition, ranked_pool, ranking_members
from audits.errors import BadInput
from tests.cases.families import as_one
from tests.cases.simulations import fewer, sizes

SPLIT = Split(
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
    audited="memorised",
)

POINTS = 437


def ranking_of(split: Split = SPLIT, seed: int = 0) -> np.ndarray:
    scores = np.full(POINTS, np.nan)
    pool = ranked_pool(POINTS, split, seed)
    scores[pool] = np.random.default_rng(seed).random(len(pool))
    return scores


def design(split: Split = SPLIT, seed: int = 0) -> Partition:
    return make_partition(POINTS, split, seed, ranking=ranking_of(split, seed))


@settings(max_examples=40)
@given(st.integers(1, 12), st.integers(1, 9), st.integers(0, 2**32))
def test_memorisation_is_the_mean_inside_minus_the_mean_outside(models: int, points: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    confidence, inside = rng.random((models, points)), rng.random((models, points)) < 0.5
    for point, found in enumerate(memorisation(confidence, inside)):
        within = [confidence[model, point] for model in range(models) if inside[model, point]]
        without = [confidence[model, point] for model in range(models) if not inside[model, point]]
        if within and without:
            assert found == pytest.approx(sum(within) / len(within) - sum(without) / len(without), abs=1e-12)
        else:
            assert np.isnan(found)


def test_tables_of_different_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="differ in shape"):
        memorisation(np.zeros((2, 3)), np.zeros((3, 2), bool))


@pytest.mark.parametrize("models", [4, 7, 32])
def test_every_ranked_point_is_in_as_many_models_as_every_other(models: int) -> None:
    split = replace(SPLIT, ranking_models=models)
    pool, population = ranked_pool(POINTS, split, 0), ranking_members(POINTS, split, 0)
    inside = np.stack([np.isin(pool, member.train) for member in population])
    assert np.ptp(inside.sum(0)) <= 1
    assert inside.sum(0).min() >= 2 and (~inside).sum(0).min() >= models // 2
    for member in population:
        assert (member.role, member.shadow_set, len(member.forget)) == ("ranking", -1, 0)
        assert len(np.unique(member.train)) == len(member.train) == split.train_size
        assert np.isin(member.train, pool).all()


def test_every_ranked_point_is_in_three_models_and_more_models_rank_more_points() -> None:
    wide = replace(SPLIT, target_pool=4000, test_pool=100)
    assert ranked_size(wide) == 32 * 40 // 3
    assert ranked_size(replace(wide, ranking_models=64)) == 64 * 40 // 3
    assert ranked_size(replace(wide, ranking_models=6)) == 96  # twice the candidates
    assert ranked_size(replace(wide, ranking_models=4)) == 80  # as many as 4 models hold twice


def test_the_ranking_population_looks_at_no_data_of_the_attacker_and_at_no_test_point() -> None:
    partition = design()
    ranked = set(ranked_pool(POINTS, SPLIT, 0).tolist())
    asked = set(np.concatenate([entry.ids for entry in partition.candidates]).tolist())
    shadows = [member.train for member in partition.members if member.role != "target"]
    assert not ranked & (set(np.concatenate(shadows).tolist()) - asked)
    assert not ranked & set(partition.test.tolist())


def test_candidates_are_the_top_of_the_ranked_pool_the_same_number_per_target() -> None:
    partition, scores = design(), ranking_of()
    asked = np.concatenate([entry.ids for entry in partition.candidates])
    assert len(np.unique(asked)) == len(asked) == 4 * 12
    known = np.sort(scores[~np.isnan(scores)])[::-1]
    np.testing.assert_array_equal(np.sort(scores[asked])[::-1], known[:48])
    for entry in partition.candidates:
        assert [int((entry.group == code).sum()) for code in range(3)] == [4, 5, 3]


@sizes(0.1)
def test_groups_are_dealt_without_regard_to_the_score(size: float) -> None:
    ranks = []
    for seed in range(fewer(200, size)):
        partition, scores = design(seed=seed), ranking_of(seed=seed)
        ids = np.concatenate([entry.ids for entry in partition.candidates])
        forgotten = np.concatenate([entry.forgotten for entry in partition.candidates])
        place = np.argsort(np.argsort(scores[ids]))
        ranks.append(place[forgotten].mean() - place[~forgotten].mean())
    assert abs(np.mean(ranks)) < 1.0 / np.sqrt(
        size
    )  # s.e. .3 of 200 designs; memorised points forgotten and typical ones unseen would give 24


def test_never_seen_candidates_come_from_the_pool_of_the_targets_too_but_no_target_trains_on_them() -> None:
    partition = design()
    ranked = ranked_pool(POINTS, SPLIT, 0)
    trained = np.concatenate([member.train for member in partition.members if member.role == "target"])
    unseen = np.concatenate([entry.ids[entry.unseen] for entry in partition.candidates])
    assert np.isin(unseen, ranked).all()
    assert not np.isin(unseen, trained).any()


def test_targets_train_on_their_candidates_and_stay_disjoint() -> None:
    partition = design()
    targets = {member.index: member for member in partition.members if member.role == "target"}
    for target in targets.values():
        assert len(np.unique(target.train)) == len(target.train) == SPLIT.train_size
        assert len(target.forget) == SPLIT.forget_count
        assert np.isin(target.forget, target.train).all()
    everything = np.concatenate([target.train for target in targets.values()])
    assert len(np.unique(everything)) == len(everything)
    for entry in partition.candidates:
        for index in np.unique(entry.target):
            own = entry.target == index
            assert np.isin(entry.ids[own & entry.forgotten], targets[index].forget).all()
            assert np.isin(entry.ids[own & entry.retained], targets[index].retain).all()


@as_one(
    "change, says",
    [
        ({"targets": 1, "target_pool": 60}, "65 points can be ranked, .* raise split.target_pool by 15"),
        ({"candidates_forget": 8, "candidates_unseen": 8, "candidates_retained": 15, "targets": 7}, "more than the"),
        ({"ranking_models": 3}, "ranking_models is 3; use 4 or more"),
        ({"forget": ForgetIds(tuple(range(8)))}, "give a fraction to forget"),
        (
            {"target_pool": 75, "candidates_forget": 8, "candidates_unseen": 5, "candidates_retained": 5},
            "left to train",
        ),
    ],
)
def test_rankings_that_cannot_be_made_are_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(BadInput, match=says):
        ranked_pool(POINTS, replace(SPLIT, **change), 0)  # type: ignore[arg-type]  # fields of its own


def test_a_missing_or_short_ranking_is_refused() -> None:
    with pytest.raises(BadInput, match="no ranking of the points was given"):
        make_partition(POINTS, SPLIT, 0)
    short = ranking_of()
    short[ranked_pool(POINTS, SPLIT, 0)[40:]] = np.nan
    with pytest.raises(BadInput, match="40 points are ranked, 48 candidates are needed"):
        make_partition(POINTS, SPLIT, 0, ranking=short)
