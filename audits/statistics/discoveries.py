"""Discoveries of single points: false discovery rate control on p-values, and whether it kept its promise.

A discovery is a candidate called "forgotten"; its p-value is that of "the target never saw the point"
(:meth:`audits.apollo.attacks.base.Finding.p_values`). The family is all candidates of one setting × unlearner × attack.

Benjamini and Hochberg (1995) keep the rate when p-values are independent or positively dependent (PRDS; Benjamini and
Yekutieli 2001), which p-values from one shared null sample are (Bates et al., arXiv 2104.08279). That is assumed of the
default; candidates of one target also share its training run, and where that makes them depend otherwise, "any"
(Benjamini and Yekutieli) holds, at the price of a factor 1 + 1/2 + … + 1/n.

From "Membership inference attacks with false discovery rate control" (arXiv 2508.07066) we take the aim, the wrapper
around any attack's scores and the p-values from known non-members; not its adjusted decision. In an audit the truth is
known afterwards, so the false discovery proportion is measured and shown beside the promise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audits.arrays import Floats
from audits.errors import BadInput, did_you_mean
from audits.statistics import intervals
from audits.statistics.summary import Cell, Columns, Row, cells

Dependence = Literal["positive", "any"]
JUDGE = "apollo"


def q_values(p: ArrayLike, dependence: Dependence = "positive") -> Floats:
    """Return for each p-value (n,) the least false discovery rate at which it is a discovery.

    "positive": Benjamini–Hochberg; "any": Benjamini–Yekutieli. Raises BadInput for values outside [0, 1].
    """
    if dependence not in get_args(Dependence):
        allowed = get_args(Dependence)
        raise BadInput(f"dependence {dependence!r}{did_you_mean(dependence, allowed)}; allowed: {', '.join(allowed)}")
    values = np.asarray(p, dtype=np.float64)
    if values.size and not ((values >= 0) & (values <= 1)).all():
        raise BadInput("p-values must lie between 0 and 1")
    ranks = np.arange(values.size, 0, -1)
    factor = float((1.0 / ranks).sum()) if dependence == "any" else 1.0
    order = np.argsort(-values, kind="stable")
    adjusted = np.empty(values.size)
    adjusted[order] = np.minimum.accumulate(np.minimum(1.0, values[order] * factor * values.size / ranks))
    return adjusted


def family_q_values(scores: Columns, dependence: Dependence = "positive") -> Floats:
    """Return q-values (n,) of a scores table with ``p_value``: one family per setting × unlearner × attack.

    NaN for retained points: they are neither forgotten nor unseen, so they are outside every family.
    """
    names = ("setting", "unlearner", "attack")
    keys = np.stack([np.unique(np.asarray(scores[name]).astype(str), return_inverse=True)[1] for name in names])
    families = np.unique(keys, axis=1, return_inverse=True)[1].reshape(-1)
    asked = np.asarray(scores["group"]) != "retained"
    p = np.asarray(scores["p_value"], dtype=np.float64)
    found = np.full(p.size, np.nan)
    for family in np.unique(families):
        rows = np.flatnonzero((families == family) & asked)
        found[rows] = q_values(p[rows], dependence)
    return found


def judge_among(attacks: Sequence[str]) -> str:
    """Return the attack that fills the exposure list: ``apollo`` where it runs, else the first of the plan.

    Fixed by name: picking the attack that did best would read the truth about the points it lists.
    """
    return JUDGE if JUDGE in attacks else attacks[0]


def discovery_rows(scores: Columns, fdr: float, level: float = 0.95) -> list[Row]:
    """Return one row per setting × unlearner × attack: promised rate, discoveries, what was false, what was found.

    ``fdp``: share of the discoveries that are unseen points (0 when there are none), with an interval over targets;
    ``power``: share of the forget points that are discovered, likewise. One run shows one FDP; its mean over runs is
    what ``claimed_fdr`` bounds. Tables without ``q_value`` give no rows, nor do oracles, whose thresholds are read
    off the judged points.
    """
    if "q_value" not in scores:
        return []
    return [_row(cell, fdr, level) for cell in cells(scores) if cell.columns["access"][0] != "oracle"]


def exposed_points(scores: Columns, attack: str, fdr: float, setting: str) -> list[Row]:
    """Return the forget points that ``attack`` discovers at ``fdr`` in ``setting``, per unlearner by rising p-value."""
    if "q_value" not in scores:
        return []
    found: list[Row] = []
    for cell in cells(scores):
        if (cell.setting, cell.attack) != (setting, attack):
            continue
        columns = cell.columns
        rows = np.flatnonzero(cell.member & (columns["q_value"] <= fdr))
        order = rows[np.lexsort((columns["point_id"][rows], columns["target"][rows], columns["p_value"][rows]))]
        found += [_point(cell.unlearner, columns, int(row)) for row in order]
    return found


def _point(unlearner: str, columns: Mapping[str, NDArray[Any]], row: int) -> Row:
    """Return one line of the exposure list."""
    return {
        "unlearner": unlearner,
        "target": int(columns["target"][row]),
        "point_id": int(columns["point_id"][row]),
        "label": int(columns["label"][row]),
        "score": float(columns["score"][row]),
        "p": float(columns["p_value"][row]),
        "q": float(columns["q_value"][row]),
    }


def _row(cell: Cell, fdr: float, level: float) -> Row:
    """Return promise and outcome of one cell."""
    found = cell.columns["q_value"] <= fdr
    targets = np.unique(cell.target)
    said = _counts(found, cell, targets)
    false = _counts(found & ~cell.member, cell, targets)
    forget = _counts(cell.member, cell, targets)
    none = said.sum() == 0
    fdp_low, fdp_high = (0.0, 1.0) if none else intervals.clustered_rate(false, said, level)
    power_low, power_high = intervals.clustered_rate(said - false, forget, level)
    return {
        "setting": cell.setting,
        "unlearner": cell.unlearner,
        "attack": cell.attack,
        "access": str(cell.columns["access"][0]),
        "claimed_fdr": float(fdr),
        "discoveries": int(said.sum()),
        "false": int(false.sum()),
        "fdp": 0.0 if none else float(false.sum() / said.sum()),
        "fdp_low": fdp_low,
        "fdp_high": fdp_high,
        "power": float((said - false).sum() / forget.sum()),
        "power_low": power_low,
        "power_high": power_high,
    }


def _counts(flags: NDArray[np.bool_], cell: Cell, targets: NDArray[Any]) -> Floats:
    """Return how many of ``flags`` are set for each target."""
    return np.array([float((flags & (cell.target == name)).sum()) for name in targets])
