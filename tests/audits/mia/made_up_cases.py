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

CLASSES, KNOWN, ASKED, FEATURES = 4, 240, 40, 3


@dataclass(frozen=True)
class MadeUp:
    """A case and which points (T, K) each judged model trained on; null models, the last ones, on none."""

    case: Case
    member: Bools


def logits_of(log_odds: Floats, labels: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return logits (A, K, CLASSES) whose log-odds of the true class are ``log_odds`` (A, K)."""
    true = np.arange(CLASSES) == labels[:, None]
    return np.where(true, (log_odds + np.log(CLASSES - 1))[..., None], 0.0).astype(np.float32)


def made_up(seed: int, points: int = 60, shadows: int = 6, nulls: int = 2, effect: float = 1.5) -> MadeUp:
    """Return a case of two targets, ``nulls`` null models and ``shadows`` shadows of one pool of ``points``."""
    rng = np.random.default_rng(seed)
    pairs = [draw_twins(points, seed, pair).half for pair in range(1 + shadows // 2)]
    halves = np.concatenate([*pairs[:1], np.zeros((nulls, points), bool), *pairs[1:]])
    models = len(halves)
    x, hard = rng.normal(size=(points + KNOWN, FEATURES)), rng.normal(0.0, 1.5, points + KNOWN)
    hard += x[:, 0]
    own = rng.normal(0.0, 0.1, (models, 1))
    luck = rng.normal(0.0, 0.8, (models, points + KNOWN))
    odds = 1.0 + hard + own + luck
    members = np.concatenate([halves, np.zeros((models, KNOWN), bool)], axis=1)
    odds = np.where(members, 0.5 * odds + 2.0 * effect, odds) if effect else odds
    labels = rng.integers(CLASSES, size=points + KNOWN)
    here, there = logits_of(odds[:, :points], labels[:points]), logits_of(odds[:, points:], labels[points:])
    inputs = Inputs(x[:points], x[points:], labels[:points], labels[points:])
    judged, places = 2 + nulls, np.sort(rng.permutation(points)[:ASKED])
    distances = Distances(places, odds[:judged][:, places], odds[:judged, points:], 316)
    case = case_of(
        here[:judged], there[:judged], inputs, np.ones(points, bool), (here[judged:], there[judged:], halves[judged:]),
        distances,
    )  # fmt: skip
    return MadeUp(case, halves[:judged])
