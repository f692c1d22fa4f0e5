"""A ranking of points from a single training each: one model, watched while it trains as it always would.

What ranks is Σ ½·log2(1 + GNQ) along training, known before any shadow is trained and before anything is unlearned. It
stands under the Gaussian model of ``bits``; how well it foretells an attack is measured, never guaranteed.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import nn

from audits.data.tensors import TensorSet
from audits.gradients.gram import CHUNK
from audits.seeds import Purpose, derive_seed
from audits.training.keeper import NEVER, Keeper
from audits.training.recipe import Recipe
from audits.uniqueness.accumulate import Trace, fit_traced, steps_of

RANKING = "gnq_log"
"""Of ``rankings``: the sum that predicts best which points shadows find exposed."""

LOOKS = 8
"""Checkpoints of a training at which all gradients are read, beside its beginning: the default of a GNQ audit."""

RIDGE = 1e-3
"""λ over the mean of ‖g‖²: that of a GNQ audit by default, not tuned."""


def train_watched(
    build: Callable[[int], nn.Module],
    data: TensorSet,
    recipe: Recipe,
    seed: int,
    chunk: int = CHUNK,
    keeper: Keeper = NEVER,
) -> tuple[nn.Module, Trace]:
    """Return the model of ``train_model`` with these arguments, to the same bits, and what was seen of its points.

    Mode ridge, ``LOOKS`` + 1 checkpoints at most. ``chunk``: points a pass; ``keeper``: as in ``fit``. Raises as
    ``fit_traced`` does.
    """
    model = build(derive_seed(seed, Purpose.INIT)).to(data.y.device)
    every = max(1, -(-steps_of(recipe, len(data)) // LOOKS))
    trace = fit_traced(
        model,
        data,
        recipe,
        seed=derive_seed(seed, Purpose.FIT),
        every=every,
        modes=("ridge",),
        ridge=RIDGE,
        chunk=chunk,
        keeper=keeper,
    )
    return model, trace


def percentile(scores: ArrayLike) -> NDArray[np.float64]:
    """Return the share of the N ``scores`` below each one, equal ones counted by half, itself too: (N,) in (0, 1)."""
    from scipy.stats import rankdata

    found: NDArray[np.float64] = (rankdata(np.asarray(scores, np.float64)) - 0.5) / np.size(scores)
    return found
