"""Simulated pairs of runs, and how often intervals of their difference hold it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from audits.statistics.judged import Judged
from audits.statistics.paired import AUC, TPR, Difference, difference, measured
from audits.statistics.shared_targets import shared_targets


@dataclass(frozen=True)
class Case:
    """What two simulated runs share: targets and their points, points only, or nothing.

    ``crossed``: all targets are asked about the same points; ``gain``: separation of run a above that of run b.
    """

    name: str
    targets: int = 8
    size: int = 60
    same_targets: bool = True
    same_points: bool = True
    crossed: bool = False
    gain: float = 0.0


CASES = (
    Case("targets and their points", gain=0.4),
    Case("targets, whose points are the same for all", crossed=True, gain=0.4),
    Case("points, the same for all targets", same_targets=False, crossed=True, gain=0.4),
    Case("nothing", same_targets=False, same_points=False, gain=0.4),
    Case("nothing; points the same for all targets", same_targets=False, same_points=False, crossed=True, gain=0.4),
    Case("the one target and its points", targets=1, size=400, gain=0.4),
    Case("nothing, one target each", targets=1, size=400, same_targets=False, same_points=False, gain=0.4),
)
SPREAD, BETWEEN, SINGLE = 0.5, 0.15, 1.0
"""Deviations: of what a point adds to all of its scores, of targets' separation, and of a score's own noise."""


def runs(case: Case, rng: np.random.Generator) -> tuple[Judged, Judged]:
    """Return two simulated runs of which scores of members lie higher, by ½ and ½ + ``gain``, than those of others."""
    points = case.size * (1 if case.crossed else case.targets)
    hard = rng.normal(0, SPREAD, points)
    other = hard if case.same_points else rng.normal(0, SPREAD, points)
    targets = np.repeat(np.arange(case.targets), case.size)
    ids = np.tile(np.arange(case.size), case.targets) if case.crossed else np.arange(points)
    member = drawn(case, rng)
    members = member if case.same_targets else drawn(case, rng)
    luck = rng.normal(0, BETWEEN, case.targets)
    lucks = luck if case.same_targets else rng.normal(0, BETWEEN, case.targets)
    noise = rng.normal(0, SINGLE, ids.size)
    noises = (
        0.8 * noise + 0.6 * rng.normal(0, SINGLE, ids.size) if case.same_targets else rng.normal(0, SINGLE, ids.size)
    )
    if case.targets == 1:  # nothing is said about other targets: their luck is that of this one
        luck = lucks = np.zeros(1)
    first = (0.5 + case.gain + luck[targets]) * member + hard[ids] + noise
    second = (0.5 + lucks[targets]) * members + other[ids] + noises
    names = ids if case.same_points else ids + points
    calls = {"": (first > 1.0).astype(float)}, {"": (second > 1.0).astype(float)}
    return (
        Judged("base", "x", first, member, targets, ids, calls[0]),
        Judged("base", "x", second, members, targets, names, calls[1]),
    )


def drawn(case: Case, rng: np.random.Generator) -> np.ndarray:
    """Return which half of each target's points are members."""
    return np.concatenate([rng.permutation(np.arange(case.size) % 2 == 0) for _ in range(case.targets)])


def truth(case: Case, metric: str) -> float:
    """Return the true difference between the two runs."""
    if metric == AUC:
        spread = math.sqrt(2 * (SPREAD**2 + SINGLE**2) + (BETWEEN**2 if case.targets > 1 else 0.0))
        return float(norm.cdf((0.5 + case.gain) / spread) - norm.cdf(0.5 / spread))
    spread = math.sqrt(SPREAD**2 + SINGLE**2 + (BETWEEN**2 if case.targets > 1 else 0.0))
    return float(norm.cdf((case.gain - 0.5) / spread) - norm.cdf(-0.5 / spread))


def found(case: Case, rng: np.random.Generator, metric: str = AUC) -> Difference:
    """Return the difference of one simulated pair of runs."""
    a, b = runs(case, rng)
    return difference(measured(a, metric), measured(b, metric), shared_targets(a, b), points=case.same_points)


def covered(case: Case, repeats: int, seed: int, metric: str = AUC) -> tuple[float, float]:
    """Return the share of intervals that hold the truth, and of p-values at most .05."""
    rng = np.random.default_rng(seed)
    true = truth(case, metric)
    made = [found(case, rng, metric) for _ in range(repeats)]
    held = [each.low is not None and each.high is not None and each.low <= true <= each.high for each in made]
    return float(np.mean(held)), float(np.mean([each.p is not None and each.p <= 0.05 for each in made]))


__all__ = ["AUC", "CASES", "TPR", "Case", "covered", "found", "runs", "truth"]
