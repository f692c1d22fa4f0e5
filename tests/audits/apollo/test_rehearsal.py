"""Shadows that play the target: who is asked what, who is left out, and that the score means what it says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from audits.apollo.attacks import ATTACKS
from audits.apollo.attacks.calibration import fit_logistic, log_odds
from audits.apollo.evidence import Evidence, Posteriors, Walks
from audits.apollo.evidence.played import played, players
from audits.apollo.rehearsal import rehearsed
from audits.conformance import apollo_walks
from audits.errors import BadInput
from tests.cases.families import thinned
from tests.cases.simulations import fewer, sizes
from tests.cases.synthetic_evidence import auc, make_evidence

REHEARSED = ("apollo", "apollo_ladder", "apollo_plus", "random_directions", "single_query", "u_lira", "rmia")


@pytest.fixture(autouse=True)
def complementary_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deal synthetic candidates as the design does: two shadows at a time, each the points that the other lacks."""

    def dealt(rng: np.random.Generator, models: int, candidates: int) -> np.ndarray:
        found = []
        for _ in range(models // 2):
            first = rng.permuted(np.arange(candidates) < candidates // 2)
            found += [first, ~first]
        return np.array(found)

    monkeypatch.setattr(apollo_walks, "balanced", dealt)


def mean_rehearsed(name: str, seeds: range, **how: float) -> np.ndarray:
    """Return the mean AUC over players, one a seed, of an attack on synthetic evidence."""
    made = (make_evidence(seed, 80, kinds=ATTACKS[name].reads, models=6, **how)[0] for seed in seeds)
    return np.array([rehearsed(ATTACKS[name](), each).auc.mean() for each in made])


def by_hand(walks: Walks, half: int, shadow: int) -> np.ndarray:
    """Return the calibrated score (K,) of a player, point by point: the slow obvious form."""
    walk = 1 - half
    others = [i for i in range(walks.per_half) if i // 2 != shadow // 2]
    inside, outside = walks.inside[walk], walks.outside[walk]

    def own(i: int, k: int) -> list[float]:
        return [float(walks.pseudo[walk, i, k, block].mean()) for block in walks.blocks]

    def row(i: int, k: int, references: list[int]) -> list[float]:
        beside = []
        for side in (inside, outside):
            beside += list(np.mean([own(j, k) for j in references if side[j, k]], axis=0))
        return own(i, k) + beside

    points = range(walks.pseudo.shape[2])
    pairs = [(i, k) for i in others for k in points if inside[i, k] or outside[i, k]]
    rows = np.array([row(i, k, [j for j in others if j != i]) for i, k in pairs])
    fit = fit_logistic(rows, np.array([inside[i, k] for i, k in pairs]))
    score = []
    for k in points:  # in the places of those outside: each is beside the references of the one that it replaces
        places = [i for i in others if outside[i, k]]
        score.append(np.mean([log_odds(np.array(row(shadow, k, [j for j in others if j != i])), *fit) for i in places]))
    return np.array(score)


@pytest.mark.parametrize("player", [pytest.param((0, 1), marks=pytest.mark.long), (1, 4)])
def test_a_player_is_judged_along_the_other_halfs_walk_without_itself_and_its_complement(player):
    found, _ = make_evidence(3, 30, kinds=["apollo"], models=6)
    walks = found.walk("apollo")
    score = ATTACKS["apollo"]().judge(played(found, ["apollo"], player)).score
    np.testing.assert_allclose(score, by_hand(walks, *player), rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", REHEARSED)
def test_nothing_that_a_target_answered_or_that_a_complement_did_is_read(name):
    """Whatever is put in their place, the score of a player stays what it was."""
    kinds = ATTACKS[name].reads
    found, _ = make_evidence(5, 40, kinds=kinds, models=6)
    half, shadow = players(found, kinds)[-3]  # of the second half, in the middle
    spoilt = {}
    for kind, part in found.parts.items():
        arrays = {array: np.array(value) for array, value in part.arrays().items()}
        arrays["target"][...] = 0
        for array, axis in part.shadows.items():
            if array not in ("inside", "outside", "apart"):
                twin = shadow ^ 1
                arrays[array][(1 - half, twin) if axis else half * part.per_half + twin] = 0
        if isinstance(part, Walks):  # the walk that the player's half drew is not asked of it
            arrays["pseudo"][half] = False
            arrays["confidence"][half] = 0.5
        spoilt[kind] = type(part)(**arrays)
    whole, without = (
        ATTACKS[name]().judge(played(each, kinds, (half, shadow))).score for each in (found, Evidence(spoilt))
    )
    np.testing.assert_array_equal(whole, without)


def test_every_point_has_as_many_shadows_inside_as_outside_beside_a_player():
    kinds = ("apollo", "posteriors")
    found, _ = make_evidence(5, 40, kinds=kinds, models=6)
    for player in players(found, kinds):
        own = played(found, kinds, player)
        walks, seen = own.walk("apollo"), own.posterior()
        assert walks.inside.shape == (2, 4, 40) and (walks.inside.sum(1) == walks.outside.sum(1)).all()
        assert seen.inside.shape == (10, 40) and (seen.inside.sum(0) == seen.outside.sum(0)).all()
        row = player[0] * 6 + player[1]
        assert (seen.target == found.posterior().shadow[row]).all()
        assert (own.truth == found.walk("apollo").inside[1 - player[0], player[1]]).all()


def test_with_retained_candidates_four_shadows_that_were_dealt_together_are_left_out():
    found, _ = make_evidence(5, 40, kinds=["apollo"], models=8, kept=True)
    own = played(found, ["apollo"], (0, 6), retained=True).walk("apollo")
    assert (own.pseudo == found.walk("apollo").pseudo[[1, 1], :4]).all()


@pytest.mark.long
@sizes(0.5)
@pytest.mark.parametrize("name", ["apollo", "u_lira"])
def test_where_nothing_is_left_to_be_seen_the_score_is_one_half(name, size):
    """Complements that took part would put it below: that of apollo at .40, that of u_lira at .47."""
    found = mean_rehearsed(name, range(100, 100 + fewer(12, size)), effect=0.0)
    error = found.std(ddof=1) / np.sqrt(len(found))
    assert error < 0.008 / np.sqrt(size)
    assert abs(found.mean() - 0.5) < 3 * error


@sizes(0.4)
@pytest.mark.parametrize(("name", "below"), thinned([("apollo", 0.06), ("u_lira", 0.04)], [("u_lira", 0.04)]))
def test_the_score_grows_with_what_targets_lose_and_comes_close_to_it(name, below, size):
    """A player of apollo walks one way and not two, so that its score stays below that of targets."""
    attack, selection, targets = ATTACKS[name](), [], []
    for effect in (0.6, 1.8):
        made = [
            make_evidence(seed, 80, kinds=attack.reads, models=6, effect=effect)
            for seed in range(200, 200 + int(8 * size))
        ]
        targets.append(np.mean([auc(attack.judge(found).score, forgotten) for found, forgotten in made]))
        selection.append(np.mean([rehearsed(attack, found).auc.mean() for found, _ in made]))
    assert selection[1] > selection[0] + 0.1 and targets[1] > targets[0] + 0.1
    assert (abs(np.subtract(targets, selection)) < below).all(), (selection, targets)


def test_attacks_on_whose_evidence_no_shadow_can_play_are_refused():
    found, _ = make_evidence(1, 40, kinds=["offline", "boundary", "apollo"], models=6)
    with pytest.raises(BadInput, match="never saw a candidate"):
        rehearsed(ATTACKS["apollo_offline"](), found)
    with pytest.raises(BadInput, match="walked anew for every model"):
        rehearsed(ATTACKS["boundary_distance"](), found)
    few = replace(found, parts={"apollo": found.walk("apollo").of_shadows(np.arange(6) < 2)})
    with pytest.raises(BadInput, match="4 shadows are too few"):
        rehearsed(ATTACKS["apollo"](), few)


def test_posteriors_of_a_player_are_its_own_after_unlearning():
    found, _ = make_evidence(1, 40, kinds=["posteriors"], models=6)
    part = played(found, ["posteriors"], (1, 0)).part("posteriors")
    assert isinstance(part, Posteriors)
    assert (part.target == found.posterior().shadow[6]).all()
    assert (part.original == np.delete(found.posterior().original, [6, 7], axis=0)).all()
