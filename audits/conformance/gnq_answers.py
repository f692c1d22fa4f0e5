"""Random answers of twins and shadows of a pool, with a known effect of membership."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from audits.data.twins import draw_twins
from audits.gnq.answers import PoolAnswers
from audits.gnq.kept import kept_points

POINTS, CLASSES = 200, 4
LABELS = np.arange(POINTS) % CLASSES


def drawn(*shape: int, seed: int = 0) -> NDArray[np.float64]:
    """Return normal draws."""
    return np.random.default_rng(seed).normal(size=shape)


def pool(pairs: int, seed: int, share: float = 0.0, gap: float = 0.0, inner: float = 0.0) -> PoolAnswers:
    """Return random models: the true logit is ``gap`` higher, and one feature ``inner``, for points they kept."""
    half = np.concatenate([draw_twins(POINTS, seed, pair).half for pair in range(pairs)])
    kept = kept_points(half, drawn(*half.shape, seed=seed), share)
    logits = drawn(2 * pairs, POINTS, CLASSES, seed=seed + 100)
    logits += gap * kept[..., None] * (np.arange(CLASSES) == LABELS[:, None])
    features = np.exp(drawn(2 * pairs, POINTS, 3, seed=seed + 200))  # skewed, as norms are
    features[..., 1] += inner * kept
    return PoolAnswers(logits, half, kept, features.astype(np.float32))
