"""Points of some classes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Ids
from audits.errors import BadInput


def points_of(labels: NDArray[np.int64], classes: tuple[int, ...]) -> Ids:
    """Return the ids of the points whose label is one of ``classes``; BadInput when a class has no point."""
    missing = [entry for entry in classes if not (labels == entry).any()]
    if missing or not classes:
        raise BadInput(f"classes are {list(classes)}; give one or more, each with points (none: {missing})")
    return np.flatnonzero(np.isin(labels, classes)).astype(np.int64)
