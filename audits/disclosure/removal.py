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

from audits.attacks.confidence import of_true_class, scaled
from audits.attacks.lira import log_likelihood_ratio
from audits.errors import BadInput, did_you_mean
from audits.evaluation.roc import auc
from audits.seeds import derive_seed, numpy_generator

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.int64]

GROUPS = ("contributors", "kept", "kept_unfiltered", "removed", "removed_unfiltered")
"""Who is told apart from whom; see ``compared``."""

ONE_SIDED = ("kept_unfiltered", "removed_unfiltered")
"""Groups in which the rule chose the members only."""


@dataclass(frozen=True)
class Twins:
    """``half`` (2, 2n) bool: which points of the pool each twin trains on; ``seeds``: of its first training,
    ``retraining_seeds``: of the one on what it keeps."""

    half: Bools
    seeds: tuple[int, int]
    retraining_seeds: tuple[int, int]


@dataclass(frozen=True)
class PoolAnswers:
    """Models of one pool and their answers to all its points; rows 2i and 2i + 1 are twins.

    ``logits`` (M, 2n, classes); ``half`` (M, 2n) bool: whose points a model was made from; ``kept`` (M, 2n) bool: those
    left by the rule, all of the half for models that remove nothing. Answers from before the removal, with ``kept``
    from it, say how exposed the same points were. Raises BadInput for shapes that do not fit, twins that do not share
    out the pool and points kept that a model does not have.
    """

    logits: NDArray[Any]
    half: Bools
    kept: Bools

    def __post_init__(self) -> None:
        if self.logits.ndim != 3 or self.logits.shape[:2] != self.half.shape or self.half.shape != self.kept.shape:
            raise BadInput(
                f"logits have shape {self.logits.shape}, half {self.half.shape} and kept {self.kept.shape}; allowed: "
                "(models, points, classes), and (models, points) twice"
            )
        if (self.half == twin_of(self.half)).any():
            raise BadInput("half: rows 2i and 2i + 1 must be twins, every point in exactly one of them")
        if (self.kept & ~self.half).any():
            raise BadInput("kept has points that are not in the model's half; use kept_points")


@dataclass(frozen=True)
class GroupAuc:
    """``auc`` (T,) float64: how well an attack tells a group's members from its non-members, by target.

    NaN where a target has nobody on one side. Below ½ is possible, for the score means "more like a member" on one side
    only; see ``two_sided_auc``.
    """

    group: str
    attack: str
    auc: Floats


def draw_twins(points: int, seed: int, *index: int | str) -> Twins:
    """Return twins of a pool of ``points``, halved at random; ``index`` tells several of one pool apart.

    Targets and shadows are drawn alike. Raises BadInput unless ``points`` is even and 4 or more.
    """
    if points < 4 or points % 2:
        raise BadInput(f"points is {points}; allowed: an even number, 4 or more, of which each twin has half")
    order = numpy_generator(derive_seed(seed, "twins", *index)).permutation(points)
    first = np.zeros(points, bool)
    first[order[: points // 2]] = True
    trained, again = (
        (derive_seed(seed, purpose, *index, 0), derive_seed(seed, purpose, *index, 1))
        for purpose in ("twin", "retrained twin")
    )
    return Twins(np.stack([first, ~first]), trained, again)


def kept_points(half: Bools, scores: ArrayLike, share: float) -> Bools:
    """Return which points (M, 2n) each model keeps: all of its ``half`` but the round(share·n) of highest score.

    ``scores`` (M, 2n): each model's ranking of its own points; those of others are not read. A half ends between two
    integers: Python's round, to the even one. Of equal scores the first in the pool are removed. Raises BadInput for a
    share outside [0, 1), shapes that do not fit, scores that are not numbers, and where nobody is left.
    """
    ranked = np.asarray(scores, np.float64)
    if half.ndim != 2 or half.dtype != bool or ranked.shape != half.shape:
        raise BadInput(f"half is {half.dtype} {half.shape} and scores {ranked.shape}; allowed: bool (models, points)")
    if not 0 <= share < 1:
        raise BadInput(f"share is {share}; allowed: 0 up to, but not, 1 (of a model's points to remove)")
    if np.isnan(ranked[half]).any():
        raise BadInput("scores of a model's own points are not numbers; rank each point that it trains on")
    kept = half.copy()
    for model, row in enumerate(ranked):
        own = np.flatnonzero(half[model])
        removed = round(share * len(own))
        if removed == len(own):
            raise BadInput(f"share is {share}, which removes all {len(own)} points of model {model}; remove fewer")
        kept[model, own[np.argsort(-row[own], kind="stable")[:removed]]] = False
    return kept


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


def group_aucs(
    targets: PoolAnswers,
    labels: Labels,
    naive: PoolAnswers | None = None,
    adaptive: PoolAnswers | None = None,
    groups: Iterable[str] = GROUPS,
) -> list[GroupAuc]:
    """Return the AUC of every attack on every group, by target; all models are of one pool with ``labels`` (2n,).

    - loss: minus the loss (Yeom et al., arXiv 1709.01604); no shadows.
    - lira_naive: likelihood ratio (LiRA, arXiv 2112.03570, variances pooled over points) with ordinary shadows: inside
      is "trained on it", outside "did not".
    - lira_adaptive: with shadows that ran the pipeline: inside and outside are the group's own members and non-members
      of each shadow, so that a shadow that removed a point speaks of what removed points look like. Points without a
      shadow on one side take the mean of that side. Not for the groups that the rule filtered on one side only: there
      these shadows know which points are likely to be removed, and the AUC would say that (fashion14: removed points
      .85 against all of the twin's, .57 against those that the twin removed).

    Shadows may not be the targets. Raises BadInput for pools of different sizes.
    """
    for name, shadows in (("naive", naive), ("adaptive", adaptive)):
        if shadows is not None and shadows.logits.shape[1:] != targets.logits.shape[1:]:
            raise BadInput(
                f"{name} shadows have logits {shadows.logits.shape}, the targets {targets.logits.shape}; ask both "
                "about all points of one pool"
            )
    confidence = scaled(targets.logits, labels)
    found = []
    for group in groups:
        scores = {"loss": minus_loss(targets.logits, labels)}
        if naive is not None:
            scores["lira_naive"] = ratios(confidence, naive, labels, "contributors")
        if adaptive is not None and group not in ONE_SIDED:
            scores["lira_adaptive"] = ratios(confidence, adaptive, labels, group)
        sides = compared(targets.half, targets.kept, group)
        found += [GroupAuc(group, attack, aucs(score, *sides)) for attack, score in scores.items()]
    return found


def minus_loss(logits: NDArray[Any], labels: Labels) -> Floats:
    """Return log p_y (M, 2n) of ``logits`` (M, 2n, classes)."""
    from scipy.special import log_softmax

    return of_true_class(log_softmax(logits.astype(np.float64), axis=-1), labels)


def ratios(confidence: Floats, shadows: PoolAnswers, labels: Labels, group: str) -> Floats:
    """Return the log likelihood ratios (T, 2n) of targets' ``confidence`` (T, 2n) by what ``shadows`` look like.

    Confidence is log(p_y/(1 − p_y)), in which the logits' constant cancels.
    """
    seen = scaled(shadows.logits, labels)
    values, sides = np.stack([seen, seen]), np.stack(compared(shadows.half, shadows.kept, group))
    return np.stack([log_likelihood_ratio(asked, values, sides) for asked in confidence])


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
