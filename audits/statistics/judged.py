"""Statements of an attack about points of target models, beside the truth: what tables of scores become."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats


@dataclass(frozen=True)
class Judged:
    """Scores of one attack in one setting: one row for each point that a target was asked about.

    ``scores`` (n,): higher = more like a member; ``member`` (n,): the truth; ``target`` (n,): the model that was asked,
    by any name; ``point`` (n,): ids of points, None where they are not known. ``decisions``: promised false-positive
    rate as text, "" for an attack's own rule → probability (n,) of saying "member". ``cluster`` (n,): what varies from
    one repetition to the next, where several targets hang together (twins of a pool); None: each target by itself.
    """

    setting: str
    attack: str
    scores: Floats = field(repr=False)
    member: Bools = field(repr=False)
    target: NDArray[Any] = field(repr=False)
    point: NDArray[Any] | None = field(default=None, repr=False)
    decisions: Mapping[str, Floats] = field(default_factory=dict, repr=False)
    cluster: NDArray[Any] | None = field(default=None, repr=False)

    @property
    def place(self) -> tuple[str, str]:
        """Setting and attack."""
        return self.setting, self.attack

    @property
    def unit(self) -> NDArray[Any]:
        """What an interval lets vary, row by row: the cluster, else the target."""
        return self.target if self.cluster is None else self.cluster

    def on(self, rows: NDArray[np.intp]) -> Judged:
        """Return what was said in ``rows``."""
        return replace(
            self,
            scores=self.scores[rows],
            member=self.member[rows],
            target=self.target[rows],
            point=None if self.point is None else self.point[rows],
            decisions={name: values[rows] for name, values in self.decisions.items()},
            cluster=None if self.cluster is None else self.cluster[rows],
        )


def rows_by(names: NDArray[Any]) -> list[NDArray[np.intp]]:
    """Return the rows (places in ``names``) of each distinct name, names in sorted order and rows in their own."""
    if not names.size:
        return []
    order = np.argsort(names, kind="stable")
    ordered = names[order]
    return np.split(order, np.flatnonzero(ordered[1:] != ordered[:-1]) + 1)
