"""True and false positive rates over pairs of radii (Apollo's Fig. 5), read from stored walks without new queries."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from audits.apollo.evidence.parts import Walks
from audits.arrays import Bools


def heat_map(walks: Walks, forgotten: Bools, unseen: Bools) -> dict[str, NDArray[Any]]:
    """Return, for every pair (UNDER step a, OVER step b), how many points are called "forgotten".

    Rule: the label at the UNDER point of step a is y, or the label at the OVER point of step b is not (arXiv
    2506.09923, section 5). ``heat.forget``, ``heat.unseen``: (T, T) counts, mean over the two groups' walks;
    ``heat.under_radius``, ``heat.over_radius``: (T,) mean distances travelled. The truth is read to count, not to
    decide.
    """
    steps = walks.radius.shape[-1]
    under = walks.target[:, :, 1 : 1 + steps]
    over = walks.target[:, :, 1 + steps :]
    said = under[:, :, :, None] | ~over[:, :, None, :]
    return {
        "heat.forget": said[:, forgotten].sum(1).mean(0),
        "heat.unseen": said[:, unseen].sum(1).mean(0),
        "heat.under_radius": walks.radius[:, :, 0].mean((0, 1)),
        "heat.over_radius": walks.radius[:, :, 1].mean((0, 1)),
    }
