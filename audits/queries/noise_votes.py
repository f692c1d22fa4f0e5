"""Votes of noisy copies: the share for which a model keeps its label."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import ArrayLike

from audits.arrays import Floats
from audits.queries.boundary_walk import LabelFunction, clip
from audits.seeds import Purpose, derive_seed, torch_generator


def kept_share(
    labels: LabelFunction,
    x: torch.Tensor,
    y: torch.Tensor,
    ids: ArrayLike,
    *,
    sigma: float,
    copies: int,
    seed: int,
    value_range: tuple[float, float] | None = None,
    chunk: int = 128,
) -> Floats:
    """Return the share (K,) of noisy copies of ``x`` (K, D) that one model labels ``y`` (K,).

    Noise N(0, ``sigma``²) is drawn from (``seed``, point id) alone, ``ids`` (K,), so all models are asked about the
    same copies and a point's answer does not depend on the others; copies are clipped to ``value_range``. Asks
    ``copies`` labels a point, of ``chunk`` points at once.
    """
    points, shares = [int(point) for point in np.asarray(ids)], []
    for first in range(0, len(x), chunk):
        near = slice(first, first + chunk)
        draws = [
            torch.randn(copies, x.shape[1], generator=torch_generator(derive_seed(seed, Purpose.NOISE_VOTES, point)))
            for point in points[near]
        ]
        asked = clip(x[near, None] + sigma * torch.stack(draws).to(x), value_range)
        said = labels(asked.flatten(0, 1)).reshape(-1, copies)
        shares.append((said == y[near, None]).double().mean(1))
    return torch.cat(shares).cpu().numpy()
