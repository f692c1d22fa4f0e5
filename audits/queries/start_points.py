"""Start points of walks to the boundary: images of a pool, and noise. The same for every model that is asked."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch

from audits.errors import BadInput
from audits.queries.hop_skip_jump_draws import Draws

NUMBERS_AT_ONCE = 2**24
"""A pool is held in float64 in parts of so many numbers, 128 MiB."""


def starts_from_pool(
    x: torch.Tensor,
    y: torch.Tensor,
    pool: torch.Tensor,
    pool_labels: torch.Tensor,
    count: int,
    own: int = 2,
    agreement: npt.NDArray[np.float64] | None = None,
) -> torch.Tensor:
    """Return ``count`` start points (K, count, D) for ``x`` (K, D) from ``pool`` (P, D): near, and of many classes.

    ``own`` of them, at most half, are of class ``y`` (K,), for models that label x otherwise: the nearest or, with
    ``agreement`` (P,), the share of models that label each pool point as its class, the nearest of the largest share
    there is. Around a point that models get wrong lie points of its class that they get wrong as well, from which no
    walk can begin. The others are the nearest of each other class, nearer classes first, then the second nearest of
    each, and so on. The point itself is left out. Where one kind runs out the other fills up, and a pool that is too
    small is used again. Raises ``BadInput`` for an empty pool, and for an ``agreement`` of another shape.
    """
    if agreement is not None and agreement.shape != (len(pool),):
        raise BadInput(f"agreement has shape {agreement.shape}; give one share for each of the {len(pool)} pool points")
    found = []
    known = pool_labels.cpu().numpy()
    classes = np.unique(known)
    for label, far in zip(y.tolist(), apart(x, pool), strict=True):
        order = np.flatnonzero(far > 0)
        order = order[far[order].argsort(kind="stable")]
        if not len(order):
            raise BadInput(
                f"the pool of start points has {len(pool)} points, none unlike x; give images of other classes"
            )
        turns = [enumerate(order[known[order] == other][:count]) for other in classes if other != label]
        others = [row for _, _, row in sorted((rank, far[row], row) for turn in turns for rank, row in turn)]
        home = order[known[order] == label]
        if agreement is not None:
            home = home[(-agreement[home]).argsort(kind="stable")]
        kept = others[: count - min(own, len(home), count // 2)]
        rows = [*kept, *home[: count - len(kept)]]
        found.append(pool[torch.tensor([rows[i % len(rows)] for i in range(count)], device=pool.device)])
    return torch.stack(found)


def apart(x: torch.Tensor, pool: torch.Tensor) -> npt.NDArray[np.float64]:
    """Return the L2 distances (K, P) of ``x`` (K, D) to ``pool`` (P, D), from differences: equal points are 0 apart."""
    parts = [
        torch.cdist(x.double(), part.double(), compute_mode="donot_use_mm_for_euclid_dist")
        for part in pool.split(max(1, NUMBERS_AT_ONCE // x.shape[1]))
    ]
    return torch.cat(parts, 1).cpu().numpy()


def with_noise(
    x: torch.Tensor,
    starts: torch.Tensor | None,
    count: int,
    draws: Draws,
    value_range: tuple[float, float] | None,
) -> torch.Tensor:
    """Return ``count`` start points (K, count, D): ``starts``, then uniform noise in ``value_range``."""
    given = x.new_empty(len(x), 0, x.shape[1]) if starts is None else starts.to(x)
    missing = count - given.shape[1]
    if not missing or value_range is None:
        return given
    low, high = value_range
    noise = np.stack([own.random((missing, x.shape[1]), dtype=np.float32) for own in draws.streams(0, 0)])
    return torch.cat([given, low + (high - low) * torch.from_numpy(noise).to(x)], 1)
