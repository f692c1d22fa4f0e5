"""Losses of points by what a model answers: of logits, of posteriors, of the confidence of one class."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audits.arrays import Floats, Labels
from audits.signals.confidence import of_true_class

SMALLEST_CONFIDENCE = 1e-7


def minus_loss(logits: NDArray[Any], labels: Labels) -> Floats:
    """Return log p_y (M, 2n) of ``logits`` (M, 2n, classes)."""
    from scipy.special import log_softmax

    return of_true_class(log_softmax(logits.astype(np.float64), axis=-1), labels)


def losses(posterior: NDArray[np.floating], label: ArrayLike) -> Floats:
    """Return −log p_y (...) in float64 of ``posterior`` (..., classes) for classes ``label``, which is broadcast."""
    classes = np.broadcast_to(np.asarray(label), posterior.shape[:-1])
    return log_loss(np.take_along_axis(posterior, classes[..., None], axis=-1)[..., 0])


def log_loss(confidence: ArrayLike) -> Floats:
    """Return −log p of confidences of y*, p clipped to [1e-7, 1 − 1e-7]; float64, same shape, NaN stays NaN."""
    found: Floats = -np.log(np.clip(np.asarray(confidence, np.float64), SMALLEST_CONFIDENCE, 1 - SMALLEST_CONFIDENCE))
    return found
