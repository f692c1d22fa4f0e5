"""The calibrated score of stored walks at a smaller query budget: a power-against-budget curve without a new query."""

from __future__ import annotations

import numpy as np

from audits.apollo.attacks.base import Finding
from audits.apollo.attacks.calibration import features, fitted, log_odds_of
from audits.apollo.evidence.parts import Walks
from audits.arrays import Bools, Floats, Ids
from audits.errors import BadInput


def at_budget(walks: Walks, queries: int) -> Finding:
    """Return what ``calibrated`` would have found, had only ``queries`` labels of the target been asked per candidate.

    The label at x comes first, if the walks have it, and the rest is shared by the two walks, the first getting the odd
    one. Each walk asks where pseudo-targets inside and outside differ most in their share of true labels; those of the
    other half choose, as they make the fit. A walk that gets no question is left out. Raises ``BadInput`` for a budget
    below 1 or above what was asked.
    """
    most = int(walks.queries.max())
    if not 1 <= queries <= most:
        raise BadInput(f"a budget of {queries} labels per candidate; these walks hold 1 to {most}")
    head = walks.target.shape[-1] - int(np.prod(walks.radius.shape[-2:]))
    shares = ((queries - head + 1) // 2, (queries - head) // 2)
    parts = [walk_at_budget(walks, number, head, share) for number, share in enumerate(shares) if head or share]
    return Finding.of_parts(parts, np.minimum(walks.queries, queries).astype(np.int32))


def walk_at_budget(walks: Walks, number: int, head: int, share: int) -> tuple[Floats, Floats]:
    """Return scores (S, K) and null of a walk, of which the label at x (if ``head``) and ``share`` others are asked."""
    other = 1 - number
    asked = telling(walks.pseudo[other], walks.inside[other], walks.outside[other], head, share)
    blocks = [
        columns for block in walks.blocks if (columns := asked[(asked >= block.start) & (asked < block.stop)]).size
    ]
    rows, target = features(walks.pseudo, blocks), features(walks.target[number], blocks)
    fit = fitted(rows[other], walks.inside[other], walks.outside[other])
    return log_odds_of(rows[number], target, walks.inside[number], walks.outside[number], fit)


def telling(pseudo: Bools, inside: Bools, outside: Bools, head: int, share: int) -> Ids:
    """Return the columns to ask, in order: the ``head`` first, then ``share`` of the rest by how far their shares of
    true labels inside and outside lie apart over answers ``pseudo`` (n, K, Q); of equals the earlier."""
    apart = np.abs(pseudo[inside].mean(0) - pseudo[outside].mean(0))[head:]
    best = head + np.argsort(-apart, kind="stable")[:share]
    return np.sort(np.concatenate([np.arange(head), best]))
