"""Removal of the most exposed points, judged in twins: two halves of a pool, both defended by one rule.

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

import numpy as np
from numpy.typing import ArrayLike

from audits.arrays import Bools, Floats, Labels
from audits.errors import BadInput
from audits.gnq.answers import GROUPS, GroupAuc, PoolAnswers
from audits.gnq.attacks.base import POOL_ATTACKS
from audits.statistics.roc import auc

ONE_SIDED = ("kept_unfiltered", "removed_unfiltered")
"""Groups in which the rule chose the members only."""

LEARNED = ("contributors", "kept")
"""Groups that learned attacks judge; each costs a fit of its own."""


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
