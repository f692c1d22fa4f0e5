"""The few points on which a program is tried before an audit: one that does not take all of the data shows at them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from audits.arrays import Ids
    from audits.data.image_files import Images

FIRST = 2
"""Of any data: single answers do not show whether scores add up to 1."""
AT_A_TIME = 4096
"""Points that are looked at together."""


def points_to_try(inputs: NDArray[Any] | Images, ids: Ids) -> Ids:
    """Return the ids (n,), sorted, of the points among ``ids`` on which to try a program; n ≤ 5.

    These are the first two and, of floats, which may be token ids, those with the smallest and the largest number and
    the first with one that is not whole. Images (uint8) lie between 0 and 1 and are not looked through.
    """
    if not isinstance(inputs, np.ndarray) or inputs.dtype != np.float32 or not inputs.size or not len(ids):
        return ids[:FIRST]
    flat = inputs.reshape(len(inputs), -1)
    lowest, highest, broken = [], [], []
    for first in range(0, len(ids), AT_A_TIME):
        rows = flat[ids[first : first + AT_A_TIME]]
        lowest.append(rows.min(1))
        highest.append(rows.max(1))
        broken.append((rows != np.trunc(rows)).any(1))
    told = (np.concatenate(lowest).argmin(), np.concatenate(highest).argmax(), np.concatenate(broken).argmax())
    return np.union1d(ids[:FIRST], ids[list(told)])
