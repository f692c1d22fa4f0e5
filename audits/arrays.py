"""Types of the arrays that audits pass around."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
"""Scores, losses, distances, probabilities."""

Bools = NDArray[np.bool_]
"""Membership, decisions, choices."""

Ids = NDArray[np.int64]
"""Point ids: places in a data set."""

Labels = NDArray[np.int64]
"""Classes, from 0."""
