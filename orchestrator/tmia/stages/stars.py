"""The class y* of each model at each point, where the plan asks for the true one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def filled(true: NDArray[np.int64] | None, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return y* (models, N): the ``true`` class (N,), and the models' ``own`` where there is none or it is −1."""
    return own if true is None else np.where(true >= 0, true, own)
