"""From gradient uniqueness along training to bits: what one step can give away, summed over steps.

Source: Abdelghafar, Aliakbarpour, Jermaine, arXiv 2510.10902, whose theorem is informal; reconstructed here: if
gradient noise is Gaussian and g_j lies in the range of S, one step tells at most ½·log2(1 + GNQ) bits about whether the
point was used, at every sampling rate. Under the Gaussian model only; it guarantees nothing about real training.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from audits.arrays import Floats
from audits.errors import BadInput


def bits_upper(gnq_over_time: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Return min(1, Σ_s w_s·½·log2(1 + GNQ_sj)) (N,) float64, in bits, under the Gaussian model.

    Membership is one bit, so no more can be told. Most points of a long training reach 1: rank points by
    :func:`log_uniqueness`, not by this. A bound only with GNQ in mode pinv and every step in the sum; with
    ridge, or from checkpoints, it is an estimate of one. Arguments and errors as there.
    """
    return np.minimum(1.0, log_uniqueness(gnq_over_time, weights))


def log_uniqueness(gnq_over_time: ArrayLike, weights: ArrayLike | None = None) -> Floats:
    """Return Σ_s w_s·½·log2(1 + GNQ_sj) (N,) float64, in bits, not bounded: the score that ranks points.

    ``gnq_over_time`` (S, N): GNQ of N points at S moments of training. ``weights`` (S,) ≥ 0: how many steps each moment
    stands for, such as :func:`trapezoid_weights`; None counts each once. Raises BadInput for shapes that do not fit,
    and for values that are negative or not finite.
    """
    gnq = np.asarray(gnq_over_time, np.float64)
    if gnq.ndim != 2 or not len(gnq):
        raise BadInput(f"gnq_over_time has shape {gnq.shape}; allowed: (moments, points), one moment or more")
    steps = np.ones(len(gnq)) if weights is None else np.asarray(weights, np.float64)
    if steps.shape != (len(gnq),):
        raise BadInput(f"weights has shape {steps.shape}; allowed: ({len(gnq)},), one for each moment")
    for name, values in (("gnq_over_time", gnq), ("weights", steps)):
        if not (np.isfinite(values) & (values >= 0)).all():
            raise BadInput(f"{name} has values that are negative, infinite or NaN; allowed: 0 or more, finite")
    found: Floats = steps @ np.log1p(gnq) / (2 * np.log(2))
    return found


def trapezoid_weights(steps: ArrayLike) -> Floats:
    """Return weights (S,) float64 that sum what was seen at the numbered ``steps`` (S,) over all steps between.

    The trapezoid rule: half the way to the neighbours on either side; they add up to last − first. Raises BadInput for
    fewer than two steps, and for steps that do not rise.
    """
    at = np.asarray(steps, np.float64)
    if at.ndim != 1 or len(at) < 2:
        raise BadInput(f"steps has shape {at.shape}; allowed: (S,), two or more; a single checkpoint needs no weights")
    width = np.diff(at)
    if not (np.isfinite(at).all() and (width > 0).all()):
        raise BadInput("steps do not rise; allowed: the step number of every checkpoint, each larger than the last")
    found: Floats = (np.append(width, 0.0) + np.append(0.0, width)) / 2
    return found
