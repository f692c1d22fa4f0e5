"""One pool under one arm, as the attacks see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from audits.gnq.answers import PoolAnswers

    Floats = NDArray[np.float64]
    Features = NDArray[np.float32]


@dataclass(frozen=True)
class Scene:
    """One pool under one arm: what models answered before and after, and the classes (2n,) of its points."""

    before: PoolAnswers
    after: PoolAnswers
    naive: PoolAnswers
    adaptive: PoolAnswers | None
    null: PoolAnswers | None
    labels: NDArray[np.int64]
