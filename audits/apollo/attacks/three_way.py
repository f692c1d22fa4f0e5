"""Forgotten, retained or never seen: log-odds of the three groups from walks, learnt on pseudo-targets alone.

Pseudo-targets know all three: candidates they trained on and forgot, trained on and kept, and never saw. A multinomial
logistic regression on the features of the calibrated rule, with the leave-one-out means of the point in each of the
groups, is fitted to the points of the other folds; the groups weigh the same, whatever their sizes. Nothing is known of
the target but its labels. A deviation from Apollo (arXiv 2506.09923), which tells two groups apart.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import logsumexp

from audits.apollo.attacks.calibration import RIDGE, beside, features, folds, log_odds, point_mean
from audits.apollo.evidence.parts import Walks
from audits.arrays import Bools, Floats
from audits.errors import BadInput


def groups_of(walks: Walks) -> Floats:
    """Return (K, 3) log-odds of forgotten, retained and never seen, the mean over the walks of both halves.

    Raises ``BadInput`` where no pseudo-target kept a candidate that it trained on.
    """
    found = []
    for pseudo, inside, outside, target in zip(walks.pseudo, walks.inside, walks.outside, walks.target, strict=True):
        sides = (inside, ~(inside | outside), outside)
        rows, asked = features(pseudo, walks.blocks), features(target, walks.blocks)
        found.append(told_apart(rows, asked, sides))
    odds: Floats = np.mean(found, axis=0)
    return odds


def told_apart(rows: Floats, asked: Floats, sides: Sequence[Bools]) -> Floats:
    """Return the log-odds (K, 3) of the target's groups, each point by a fit to the others' folds.

    ``rows``: (n, K, F) features of pseudo-targets, ``asked``: (K, F) of the target; ``sides``: (n, K) of each group.
    """
    if not all(side.any() for side in sides):
        raise BadInput(
            "three groups need pseudo-targets that forgot, kept and never saw candidates; set split.candidates.retained"
        )
    known = beside(rows, sides)
    unknown = np.concatenate([asked, *(point_mean(rows, side) for side in sides)], axis=-1)
    group = np.select(list(sides), [0, 1, 2])
    found = np.empty((len(asked), len(sides)))
    for own, others in folds(len(asked)):
        fit = known[:, others].reshape(-1, known.shape[-1])
        found[own] = fitted_odds(fit, group[:, others].reshape(-1), unknown[own])
    return found


def fitted_odds(rows: Floats, group: np.typing.NDArray[np.int64], asked: Floats) -> Floats:
    """Return the log-odds (k, 3) of ``asked`` (k, F) by an L2-penalised fit to ``rows`` (r, F) of ``group`` (r,)."""
    from sklearn.linear_model import LogisticRegression

    centre, scale = rows.mean(0), rows.std(0)
    scale = np.where(scale > 1e-12, scale, 1.0)
    model = LogisticRegression(C=RIDGE, class_weight="balanced", max_iter=1000, tol=1e-8)
    model.fit((rows - centre) / scale, group)
    weights = np.column_stack([model.coef_, model.intercept_])
    raw = np.stack([log_odds(asked, own, centre, scale) for own in weights], axis=-1)
    others = [logsumexp(np.delete(raw, place, axis=-1), axis=-1) for place in range(raw.shape[-1])]
    found: Floats = raw - np.stack(others, axis=-1)
    return found
