"""Answers of twins and shadows at the points of a pool."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats
from audits.errors import BadInput, did_you_mean

GROUPS = ("contributors", "kept", "kept_unfiltered", "removed", "removed_unfiltered")
"""Groups of members and non-members, defined by :func:`compared`."""


@dataclass(frozen=True)
class PoolAnswers:
    """Models of one pool and their answers to all its points; rows 2i and 2i + 1 are twins.

    ``logits`` (M, 2n, classes); ``half`` (M, 2n) bool: whose points a model was made from; ``kept`` (M, 2n) bool: those
    left by the rule, all of the half for models that remove nothing. Answers from before the removal, with ``kept``
    from it, say how exposed the same points were. ``features`` (M, 2n, F): what attack white_box reads. Raises BadInput
    for shapes that do not fit, features that are not finite, halves of no twins and points kept from outside the half.
    """

    logits: NDArray[Any]
    half: Bools
    kept: Bools
    features: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if self.logits.ndim != 3 or self.logits.shape[:2] != self.half.shape or self.half.shape != self.kept.shape:
            raise BadInput(
                f"logits have shape {self.logits.shape}, half {self.half.shape} and kept {self.kept.shape}; allowed: "
                "(models, points, classes), and (models, points) twice"
            )
        check_twins(self.half)
        if (self.kept & ~self.half).any():
            raise BadInput("kept has points that are not in the model's half; use kept_points")
        if self.features is not None and (self.features.ndim != 3 or self.features.shape[:2] != self.half.shape):
            raise BadInput(f"features have shape {self.features.shape}; allowed: {self.half.shape} and any number each")
        if self.features is not None and not np.isfinite(self.features).all():
            raise BadInput("features are not all finite; a model may have diverged: lower its learning rate")

    def sides(self, group: str) -> tuple[Bools, Bools]:
        """Return members and non-members of ``group`` for each model; see ``compared``."""
        return compared(self.half, self.kept, group)


@dataclass(frozen=True)
class GroupAuc:
    """``auc`` (T,) float64: how well an attack tells a group's members from its non-members, by target.

    NaN where a target has nobody on one side. Below ½ is possible, for the score means "more like a member" on one side
    only; see ``two_sided_auc``. ``shadows``: "none", "naive" or "adaptive"; ``scores`` (T, 2n) float64, of all points.
    """

    group: str
    attack: str
    shadows: str
    auc: Floats
    scores: Floats


def compared(half: Bools, kept: Bools, group: str) -> tuple[Bools, Bools]:
    """Return members and non-members of ``group`` for each model, (M, 2n) bool twice; rows 2i, 2i + 1 are twins.

    - contributors: all points of the half, removed or not, against all of the twin's. No filter on either side.
    - kept: the points kept against those that the twin kept, which the same rule filtered.
    - kept_unfiltered: the points kept against all of the twin's, as in arXiv 2510.10902: filtered on one side, so that
      easy points pass for protected ones.
    - removed: the points removed against those that the twin removed.
    - removed_unfiltered: the points removed against all of the twin's; below ½ since they are hard.

    Raises BadInput for another group.
    """
    gone = half & ~kept
    match group:
        case "contributors":
            return half, twin_of(half)
        case "kept":
            return kept, twin_of(kept)
        case "kept_unfiltered":
            return kept, twin_of(half)
        case "removed":
            return gone, twin_of(gone)
        case "removed_unfiltered":
            return gone, twin_of(half)
    raise BadInput(f"group is {group!r}{did_you_mean(group, GROUPS)}; allowed: {', '.join(GROUPS)}")


def twin_of(rows: Bools) -> Bools:
    """Return ``rows`` (M, 2n) with each model's row replaced by its twin's; BadInput for an odd number of models."""
    if rows.ndim != 2 or len(rows) % 2:
        raise BadInput(
            f"the array of models and points has shape {rows.shape}; allowed: (M, 2n), M even: twins in turn"
        )
    found: Bools = rows[np.arange(len(rows)) ^ 1]
    return found


def check_twins(half: Bools) -> None:
    """Raise BadInput unless rows 2i and 2i + 1 of ``half`` (M, 2n) share out the pool."""
    if (half == twin_of(half)).any():
        raise BadInput("half: rows 2i and 2i + 1 must be twins, every point in exactly one of them")
