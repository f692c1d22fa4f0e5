"""How often intervals of precision, coverage and FPR hold the truth: simulation for test_precision.py."""

from __future__ import annotations

import numpy as np

from audits.statistics.precision import measure
from audits.tmia.p_values import decider

NAMES = ("precision", "coverage", "fpr")


def scene(rng, targets, points, n_ref, shift, model):
    """Return statistics of targets and reference models and membership: hard and easy points, members moved by chance.

    ``model``: how far all points of one model move together, each point with its own weight.
    """
    member = np.stack([rng.permutation(points) < points // 2 for _ in range(targets)])
    level, weight = rng.normal(size=points), rng.normal(size=points)
    moved = np.maximum(0.0, shift + rng.normal(size=points))
    own = level + model * rng.normal(size=(targets, 1)) * weight + rng.normal(size=member.shape) + moved * member
    others = level + model * rng.normal(size=(n_ref, 1)) * weight + rng.normal(size=(n_ref, points))
    return own, others, member


def interval_coverage(case, beta, repeats, draws, seed):
    """Return {interval: share of repeats (3,) that hold the truth}, mean widths likewise; ``case``: see ``scene``.

    The truth of ``NAMES`` is the ratio of means over other targets, points and reference models.
    """
    rng = np.random.default_rng(seed)
    total = np.zeros(4)
    for _ in range(1000):
        own, others, member = scene(rng, *case)
        said = decider(own, others, beta, True)(np.arange(len(others)))
        total += [(said & member).sum(), (said & ~member).sum(), member.sum(), (~member).sum()]
    true = dict(zip(NAMES, total[[0, 0, 1]] / [total[0] + total[1], total[2], total[3]], strict=True))
    held, width = ({kind: np.zeros(3) for kind in ("crossed", "t")} for _ in range(2))
    for repeat in range(repeats):
        own, others, member = scene(rng, *case)
        decide = decider(own, others, beta, True)
        found = measure(decide, len(others), member, beta, draws=draws, seed=repeat)
        for index, name in enumerate(NAMES):
            rate = getattr(found, name)
            for kind, low, high in (("crossed", rate.low, rate.high), ("t", rate.t_low, rate.t_high)):
                held[kind][index] += low is not None and low <= true[name] <= high
                width[kind][index] += 0.0 if low is None else high - low
    return {k: v / repeats for k, v in held.items()}, {k: v / repeats for k, v in width.items()}
