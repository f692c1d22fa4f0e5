"""Forgotten, retained or never seen: how well an attack tells the three groups apart.

Read from the optional columns ``score_forget``, ``score_retained`` and ``score_unseen`` of the scores table (log-odds
of each group, of attacks that give them). The decision is the group with the largest log-odds; no threshold is fitted
to the judged points.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Floats
from audits.errors import BadInput
from audits.statistics import intervals, roc
from audits.statistics.summary import Cell, Columns, Row, cells

GROUPS = ("forget", "retained", "unseen")
COLUMNS = tuple(f"score_{name}" for name in GROUPS)


def three_way_rows(scores: Columns, level: float = 0.95) -> list[Row]:
    """Return one row per setting × unlearner × attack that gives three log-odds; none for tables without them.

    ``confusion[i][j]``: share of the points of group i (order ``groups``) called group j, with intervals over targets
    (``confusion_low``, ``confusion_high``); ``balanced_accuracy``: mean of its diagonal (chance ⅓), t interval over
    targets; ``pairs``: for every two groups the mean within-target AUC of the difference of their log-odds.
    """
    if not set(COLUMNS) <= set(scores) or "retained" not in np.asarray(scores["group"]):
        return []
    found = []
    for cell in cells(scores, retained=True):
        odds = np.stack([cell.columns[name].astype(np.float64) for name in COLUMNS], axis=1)
        missing = np.isnan(odds)
        if missing.all():
            continue
        if missing.any():
            raise BadInput(f"{cell.setting}/{cell.unlearner}/{cell.attack}: log-odds are missing for some points")
        found.append(_row(cell, odds, level))
    return found


def _row(cell: Cell, odds: Floats, level: float) -> Row:
    """Return confusion, accuracy and pairwise AUCs of one cell with log-odds (n, 3)."""
    truth = np.array([np.asarray(cell.columns["group"] == name) for name in GROUPS])
    said = odds.argmax(axis=1)
    targets = np.unique(cell.target)
    own = np.array([cell.target == name for name in targets])
    sizes = np.einsum("gn,tn->tg", truth.astype(float), own.astype(float))
    if not sizes.all():
        raise BadInput(f"{cell.setting}/{cell.unlearner}/{cell.attack}: a target lacks one of {', '.join(GROUPS)}")
    hits = np.array([[[float((row & mine & (said == j)).sum()) for j in range(3)] for row in truth] for mine in own])
    share = hits.sum(0) / sizes.sum(0)[:, None]
    span = [[intervals.clustered_rate(hits[:, i, j], sizes[:, i], level) for j in range(3)] for i in range(3)]
    accuracy = np.einsum("tii->ti", hits / sizes[:, :, None]).mean(axis=1)
    return {
        "setting": cell.setting,
        "unlearner": cell.unlearner,
        "attack": cell.attack,
        "access": str(cell.columns["access"][0]),
        "groups": list(GROUPS),
        "points": sizes.sum(0).astype(int).tolist(),
        "confusion": share.tolist(),
        "confusion_low": [[low for low, _ in row] for row in span],
        "confusion_high": [[high for _, high in row] for row in span],
        **_mean("balanced_accuracy", accuracy, level),
        "pairs": [_pair(cell, odds, truth, i, j, level) for i, j in combinations(range(3), 2)],
    }


def _pair(cell: Cell, odds: Floats, truth: NDArray[np.bool_], first: int, second: int, level: float) -> Row:
    """Return how well two groups are told apart by the difference of their log-odds."""
    rows = truth[first] | truth[second]
    values = roc.within_auc(odds[rows, first] - odds[rows, second], truth[first][rows], cell.target[rows])
    return {"groups": [GROUPS[first], GROUPS[second]], **_mean("auc", values, level)}


def _mean(name: str, values: Floats, level: float) -> dict[str, Any]:
    """Return the mean over targets and its t interval within [0, 1] (the whole of it with a single target)."""
    low, high = intervals.ibragimov_mueller_t(values, level) if values.size > 1 else (0.0, 1.0)
    return {name: float(values.mean()), f"{name}_low": max(0.0, low), f"{name}_high": min(1.0, high)}
