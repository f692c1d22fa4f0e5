"""What removing the most exposed points does, judged in twins: two halves of a pool, both defended by one rule.

A pool of 2n points is cut into halves A and B. Each twin trains on its half, ranks its own points (``rankings``), drops
the share on top and is trained again from scratch on the rest. The points that the other twin kept are non-members that
went through the *same* rule. Other comparisons mislead: kept points are easier than ordinary non-members, and
non-members filtered by their score under the target itself give an AUC near ½ by construction. Shadows come as twins of
the same pool: naive ones, which remove nothing, or adaptive ones, which run the whole pipeline; only the latter know
what a defended model looks like.

The headline is the group ``contributors`` with adaptive shadows: everybody whose data was used, removed or not. Removal
lowers average exposure, mostly by leaving out exposed points; those kept are not protected (``onion``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audits.disclosure.pool_attacks import POOL_ATTACKS
from audits.errors import BadInput, did_you_mean
from audits.evaluation.roc import auc

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.int64]

GROUPS = ("contributors", "kept", "kept_unfiltered", "removed", "removed_unfiltered")
"""Who is told apart from whom; see ``compared``."""

ONE_SIDED = ("kept_unfiltered", "removed_unfiltered")
"""Groups in which the rule chose the members only."""

LEARNED = ("contributors", "kept")
"""Groups that learned attacks judge; each costs a fit of its own."""


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


def group_aucs(
    targets: PoolAnswers,
    labels: Labels,
    naive: PoolAnswers | None = None,
    adaptive: PoolAnswers | None = None,
    groups: Iterable[str] = GROUPS,
    attacks: Iterable[str] = ("loss", "lira"),
    seed: int = 0,
) -> list[GroupAuc]:
    """Return the AUC of every attack on every group, by target; all models are of one pool with ``labels`` (2n,).

    ``attacks``: names in ``POOL_ATTACKS``; ``seed`` decides what learned ones draw. Those that read shadows are made
    once with each kind that is given:

    - naive: ordinary shadows. Inside is "trained on it", outside "did not", whatever the group.
    - adaptive: shadows that ran the pipeline. Inside and outside are the group's own members and non-members of each
      shadow, so that a shadow that removed a point speaks of what removed points look like; LiRA tells contributors
      that a shadow trained on from those that it dropped. Not for the groups that the rule filtered on one side only:
      there these shadows know which points are likely to be removed, and the AUC would say that.

    Learned attacks judge ``LEARNED`` groups only. Shadows may not be the targets. Raises BadInput for pools of
    different sizes, for an unknown attack and as ``PoolAttack.scores`` does.
    """
    teachers = {"naive": naive, "adaptive": adaptive}
    for name, shadows in teachers.items():
        if shadows is not None and shadows.logits.shape[1:] != targets.logits.shape[1:]:
            raise BadInput(
                f"{name} shadows have logits {shadows.logits.shape}, the targets {targets.logits.shape}; ask both "
                "about all points of one pool"
            )
    sides = {group: targets.sides(group) for group in groups}
    found = []
    for attack in (POOL_ATTACKS[name]() for name in attacks):
        for kind in teachers if attack.shadowed else ("none",):
            shadows = teachers.get(kind)
            if attack.shadowed and shadows is None:
                continue
            scores: dict[str, Floats] = {}  # by what the attack was taught, which naive shadows do once
            for group in sides:
                if (attack.learned and group not in LEARNED) or (kind == "adaptive" and group in ONE_SIDED):
                    continue
                taught = group if kind == "adaptive" else "contributors"
                if taught not in scores:
                    scores[taught] = attack.scores(targets, shadows, labels, taught, seed)
                judged = aucs(scores[taught], *sides[group])
                found.append(GroupAuc(group, attack.name, kind, judged, scores[taught]))
    return found


def aucs(scores: Floats, members: Bools, others: Bools) -> Floats:
    """Return the AUC (T,) of ``scores`` (T, 2n) within each target; NaN where a side is empty."""
    found = [
        auc(row[inside | outside], inside[inside | outside]) if inside.any() and outside.any() else np.nan
        for row, inside, outside in zip(scores, members, others, strict=True)
    ]
    return np.array(found)


def two_sided_auc(found: ArrayLike) -> Floats:
    """Return the AUCs (seeds, T) of an attacker who may turn the score round: 1 − AUC where members score *lower*.

    The side is read off the other seeds' targets, so that the mean stays ½ where there is nothing to tell; that of the
    larger of AUC and 1 − AUC does not. A target's twin must not decide either, since it sees the same points with the
    roles exchanged. For removed points: after removal by loss they show by *too high* a loss. Raises BadInput for
    fewer than two seeds.
    """
    each = np.asarray(found, np.float64)
    if each.ndim != 2 or len(each) < 2:
        raise BadInput(
            f"AUCs have shape {each.shape}; allowed: (seeds, targets), two seeds or more: others say the side"
        )
    mean = each.mean(1)
    others = (mean.sum() - mean) / (len(each) - 1)
    return np.where(others[:, None] < 0.5, 1 - each, each)
