"""The likelihood ratio of each point's own confidence, with the mixture that a removal makes (LiRA)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats, Labels
from audits.gnq.answers import PoolAnswers
from audits.gnq.attacks.base import POOL_ATTACKS, PoolAttack, needed
from audits.signals.confidence import scaled
from audits.signals.likelihood_ratio import gaussian, log_likelihood_ratio, moments

TINY, MOST_ALIKE = 1e-6, 0.99
"""Rates at which points are dropped stay off 0 and 1, for every rule may decide otherwise the next time."""


@POOL_ATTACKS.register("lira")
@dataclass(frozen=True)
class PoolLiRA(PoolAttack):
    """Likelihood ratio of each point's own confidence (LiRA, arXiv 2112.03570), with online shadows.

    Score: log N(φ; μ_in, σ²_in) − log N(φ; μ_out, σ²_out), φ = log(p_y/(1 − p_y)); variances are pooled over points.
    Points without a shadow on one side take the mean of that side.

    Behind a removal a contributor was either trained on or dropped, and a dropped one looks like an outsider. There
    "inside" is a mixture, and the score is log((1 − r)·N(φ; kept)/N(φ; outside) + r), r the share of the shadows with
    the point in their half that dropped it. One Gaussian over both, shifted towards the outsiders and too wide, finds
    less, so that a removal would look better than it is.

    Source: Carlini et al., arXiv 2112.03570, algorithm 1.

    Deviations: the mixture behind a removal; no augmented queries.

    Cost: posteriors at the points; ``split.shadows`` models a pool, trained again behind each defence.

    Not for: a promised rate: the attacks of this audit compare defences by AUC.
    """

    def scores(
        self, targets: PoolAnswers, shadows: PoolAnswers | None, labels: Labels, group: str, seed: int
    ) -> Floats:
        """Return log likelihood ratios (T, 2n)."""
        known = needed(shadows, self.name)
        seen, asked = scaled(known.logits, labels), scaled(targets.logits, labels)
        inside, outside = known.sides(group)
        if group == "contributors" and (inside & ~known.kept).any():
            return mixture_ratio(asked, seen, inside, known.kept, outside)
        values, sides = np.stack([seen, seen]), np.stack([inside, outside])
        return np.stack([log_likelihood_ratio(row, values, sides) for row in asked])


def mixture_ratio(asked: Floats, seen: Floats, half: Bools, kept: Bools, outside: Bools) -> Floats:
    """Return log((1 − r)·N(φ; μ_kept, σ²_kept)/N(φ; μ_out, σ²_out) + r) of ``asked`` (T, N).

    ``seen`` (M, N): confidences of shadows; ``half``, ``kept``, ``outside`` (M, N) bool: which of them have the point
    in their half, trained on it, or have it in their twin's. r (N,): ``drop_rates``; variances are pooled over points.
    A point that no shadow kept, or none has outside, takes the other mean and the mean gap of the others.
    """
    mean_in, variance_in = moments(seen, kept, pooled=True)
    mean_out, variance_out = moments(seen, outside, pooled=True)
    unkept, unseen = ~kept.any(0), ~outside.any(0)
    both = ~(unkept | unseen)
    gap = (mean_in - mean_out)[both].mean() if both.any() else 0.0
    mean_in, mean_out = np.where(unkept, mean_out + gap, mean_in), np.where(unseen, mean_in - gap, mean_out)
    dropped = drop_rates((half & ~kept).sum(0), half.sum(0))
    ratio = gaussian(asked, mean_in, variance_in) - gaussian(asked, mean_out, variance_out)
    found: Floats = np.logaddexp(np.log1p(-dropped) + ratio, np.log(dropped))
    return found


def drop_rates(dropped: NDArray[np.int64], held: NDArray[np.int64]) -> Floats:
    """Return how probably each point is dropped (N,), from how many of the shadows that ``held`` it (N,) dropped it.

    A few shadows a point say little each: rates are drawn towards their mean p as far as they differ no more than
    binomial counts do, r_j = (ρ·dropped_j + (1 − ρ)·p)/(ρ·held_j + 1 − ρ), with the ρ of a beta-binomial by moments.
    Removal at random gives ρ near 0 and one rate for all; a rule that always drops the same points ρ near 1.
    """
    p = dropped.sum() / held.sum()
    scale = max(p * (1 - p), TINY)
    pairs = max(int((held * (held - 1)).sum()), 1)
    alike = (((dropped - held * p) ** 2).sum() / scale - held.sum()) / pairs
    alike = float(np.clip(alike, 0.0, MOST_ALIKE))
    found: Floats = np.clip((alike * dropped + (1 - alike) * p) / (alike * held + 1 - alike), TINY, 1 - TINY)
    return found
