"""Cases drawn at random: models of halves of a pool whose confidence is the point's, the model's, luck and membership.

``overfit``: members' answers are drawn towards certainty and their spread shrinks, as those of overfitted models do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats
from audits.data.twins import draw_twins
from audits.mia.answers import Case, Distances, Inputs, case_of

CLASSES, KNOWN, ASKED, FEATURES = 4, 160, 40, 3
POOL = 0.7


@dataclass(frozen=True)
class MadeUp:
    """A case and which points (T, K) each judged model trained on; null models, the last ones, on none."""

    case: Case
    member: Bools


def logits_of(log_odds: Floats, labels: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return logits (A, K, CLASSES) whose log-odds of the true class are ``log_odds`` (A, K)."""
    true = np.arange(CLASSES) == labels[:, None]
    return np.where(true, (log_odds + np.log(CLASSES - 1))[..., None], 0.0).astype(np.float32)


def made_up(
    seed: int, points: int = 60, shadows: int = 6, nulls: int = 2, effect: float = 1.5, strangers: int = 6
) -> MadeUp:
    """Return a case of two targets, ``nulls`` null models, shadows and strangers of one pool of ``points``.

    What the pool adds to the hardness of a point is known to its own models alone: strangers and null models have other
    draws of it, which differ by ``POOL``.
    """
    rng = np.random.default_rng(seed)
    pairs = [draw_twins(points, seed, pair).half for pair in range(1 + shadows // 2)]
    nobody = np.zeros((nulls, points), bool)
    halves = np.concatenate([*pairs[:1], nobody, *pairs[1:], np.zeros((strangers, points), bool)])
    models = len(halves)
    x, hard = rng.normal(size=(points + KNOWN, FEATURES)), rng.normal(0.0, 1.5, points + KNOWN)
    hard += x[:, 0]
    own = rng.normal(0.0, 0.1, (models, 1))
    luck = rng.normal(0.0, 0.8, (models, points + KNOWN))
    elsewhere = ~halves.any(axis=1)
    odds = 1.0 + hard + own + luck
    odds[elsewhere] += rng.normal(0.0, POOL, (int(elsewhere.sum()), points + KNOWN))
    members = np.concatenate([halves, np.zeros((models, KNOWN), bool)], axis=1)
    odds = np.where(members, 0.5 * odds + 2.0 * effect, odds) if effect else odds
    labels = rng.integers(CLASSES, size=points + KNOWN)
    here, there = logits_of(odds[:, :points], labels[:points]), logits_of(odds[:, points:], labels[points:])
    inputs = Inputs(x[:points], x[points:], labels[:points], labels[points:])
    judged, places = 2 + nulls, np.sort(rng.permutation(points)[:ASKED])
    distances = Distances(places, odds[:judged][:, places], odds[:judged, points:], 316)
    shadow, rest = slice(judged, judged + shadows), slice(judged + shadows, None)
    case = case_of(
        here[:judged], there[:judged], inputs, np.ones(points, bool), (here[shadow], there[shadow], halves[shadow]),
        distances, (here[rest], there[rest]),
    )  # fmt: skip
    return MadeUp(case, halves[:judged])
