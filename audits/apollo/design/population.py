"""Parts of a design: models by their training and forget sets, and the points asked about, as index sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Ids

Role = Literal["target", "shadow", "offline", "ranking"]
GROUPS = ("forget", "unseen", "retained")
FORGET, UNSEEN, RETAINED = range(len(GROUPS))
NONE: Ids = np.empty(0, np.int64)


@dataclass(frozen=True)
class Member:
    """One model of the population: what it trains on and what it is later asked to forget (a subset).

    ``shadow_set`` is -1 for the models of a ranking population, which serve all targets and forget nothing.
    """

    name: str
    role: Role
    shadow_set: int
    group: int
    index: int
    train: Ids
    forget: Ids

    @property
    def retain(self) -> Ids:
        """Training points that stay, in training order."""
        return self.train[~np.isin(self.train, self.forget)]


@dataclass(frozen=True)
class Candidates:
    """The points asked about in one shadow set, in the order of every table.

    ``ids``: (K,) point ids; ``target``: (K,) the target that each point belongs to; ``group``: (K,) int8 positions in
    ``GROUPS``, the truth: in that target's forget set, never seen by it, or in its retain set. Attacks never read it.
    """

    ids: Ids
    target: Ids
    group: NDArray[np.int8]

    @property
    def forgotten(self) -> NDArray[np.bool_]:
        """(K,) bool: the point is in its target's forget set."""
        return np.equal(self.group, FORGET)

    @property
    def unseen(self) -> NDArray[np.bool_]:
        """(K,) bool: its target never saw the point."""
        return np.equal(self.group, UNSEEN)

    @property
    def retained(self) -> NDArray[np.bool_]:
        """(K,) bool: the point is in its target's retain set."""
        return np.equal(self.group, RETAINED)
