"""Rows of the main table: one for each setting, attack and promised rate, from the scores table alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.statistics.controls import clustered_rate_p
from audits.statistics.intervals import clustered_rate, ibragimov_mueller_t
from audits.statistics.roc import auc
from audits.statistics.summary import summarise
from orchestrator.judgement.estimate import Estimate, Span
from orchestrator.mia.result.rows import CanaryRow, MiaRow
from orchestrator.mia.stages.scoring import NULL, TARGET

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from orchestrator.mia.plan import MiaPlan

Columns = Mapping[str, "NDArray[Any]"]
UNIT = "pool"


def rows_where(columns: Columns, chosen: NDArray[np.bool_]) -> dict[str, NDArray[Any]]:
    """Return the rows of a table that are ``chosen``."""
    return {name: column[chosen] for name, column in columns.items()}


def judged_points(columns: Columns) -> dict[str, NDArray[Any]]:
    """Return the rows about targets and ordinary points, in the words of ``audits.statistics.summary``."""
    found = rows_where(columns, (columns["role"] == TARGET) & ~columns["canary"])
    found["unlearner"] = np.full(len(found["score"]), "none")
    found["group"] = np.where(found["member"], "forget", "unseen")
    return found


def table(
    columns: Columns, plan: MiaPlan, groups: NDArray[np.int64] | None, known: Mapping[tuple[str, str], int]
) -> list[MiaRow]:
    """Return the rows of all settings and attacks, without what controls say.

    ``known``: (setting, attack) → how many known non-members set its thresholds, 0 of attacks that left twins out.
    """
    audit = plan.audit
    summed = summarise(
        judged_points(columns), audit.fpr, level=audit.level, bootstrap=audit.bootstrap,
        permutations=audit.permutations, seed=plan.seed, groups=groups, unit=UNIT, known=known,
    )  # fmt: skip
    return [row_of(row, columns, audit.level, known[row["setting"], row["attack"]]) for row in summed]


def row_of(row: Mapping[str, Any], columns: Columns, level: float, known: int) -> MiaRow:
    """Return one row of the summary with what null models say beside it."""

    def estimate(name: str) -> Estimate:
        return Estimate(*(row[f"{name}{end}"] for end in Estimate.SUFFIXES))

    own = (columns["setting"] == row["setting"]) & (columns["attack"] == row["attack"])
    null = rows_where(columns, own & (columns["role"] == NULL) & ~columns["canary"])
    hits, sizes = calls(null, row["promised_fpr"])
    null_fpr, null_p = Estimate(), None
    if len(hits):
        null_fpr = Estimate(float(hits.sum() / sizes.sum()), *clustered_rate(hits, sizes, level))
        null_p = clustered_rate_p(hits, sizes, row["promised_fpr"], level, known=known)
    tpr, fpr = estimate("tpr"), estimate("found_fpr")
    pools = np.unique(columns["pool"][own & (columns["role"] == TARGET)])
    return MiaRow(
        setting=row["setting"],
        attack=row["attack"],
        access=row["access"],
        auc=estimate("auc"),
        auc_bootstrap=Span(row["auc_bootstrap_low"], row["auc_bootstrap_high"]),
        auc_pooled=row["auc_pooled"],
        auc_p=row["auc_p"],
        auc_p_holm=row["auc_p_holm"],
        above_chance=row["above_chance"],
        promised_fpr=row["promised_fpr"],
        tpr=tpr,
        tpr_exact=Span(row["tpr_exact_low"], row["tpr_exact_high"]),
        found_fpr=fpr,
        found_fpr_exact=Span(row["found_fpr_exact_low"], row["found_fpr_exact_high"]),
        null_fpr=null_fpr,
        roc_tpr=row["roc_tpr"],
        worth_1=worth(tpr, fpr, 0.01),
        worth_10=worth(tpr, fpr, 0.1),
        queries_per_point=row["queries_per_point"],
        pools=len(pools),
        targets=row["targets"],
        null_models=len(np.unique(null["target"])),
        members=row["forget"],
        non_members=row["unseen"],
        found_fpr_p=row["found_fpr_p"],
        found_fpr_below_p=row["found_fpr_below_p"],
        null_fpr_p=null_p,
    )


def calls(rows: Columns, rate: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return how many of ``rows`` are called members, and how many there are, by the judged model (G,).

    Of null models each model is a unit of its own: it is judged at the points of more than one pool, and what its calls
    have in common comes from the model.
    """
    decisions = rows[f"decision_{rate:g}"].astype(np.float64)
    names, place = np.unique(rows["target"], return_inverse=True)
    sizes = np.bincount(place, minlength=len(names)).astype(np.float64)
    return np.asarray(np.bincount(place, decisions, len(names)), np.float64), sizes


def worth(tpr: Estimate, fpr: Estimate, prior: float) -> Estimate:
    """Return the share of calls that are right where ``prior`` of the points asked about are members.

    π·TPR/(π·TPR + (1 − π)·FPR) at the rates found; the ends take the careful and the bold end of both. None for 0/0.
    """

    def value(hits: float | None, alarms: float | None) -> float | None:
        if hits is None or alarms is None or not hits + alarms:
            return None
        return prior * hits / (prior * hits + (1 - prior) * alarms)

    return Estimate(value(tpr.value, fpr.value), value(tpr.low, fpr.high), value(tpr.high, fpr.low))


def canary_rows(columns: Columns, level: float) -> list[CanaryRow]:
    """Return how well canaries are told in from out: the mean AUC within targets, over pools."""
    found = rows_where(columns, (columns["role"] == TARGET) & columns["canary"])
    rows = []
    for setting, attack in dict.fromkeys(zip(found["setting"], found["attack"], strict=True)):
        own = rows_where(found, (found["setting"] == setting) & (found["attack"] == attack))
        values = [pool_area(rows_where(own, own["pool"] == pool)) for pool in np.unique(own["pool"])]
        known = [value for value in values if value is not None]
        if known:
            rows.append(
                CanaryRow(
                    setting=str(setting),
                    attack=str(attack),
                    access=str(own["access"][0]),
                    canaries=len(own["score"]) // 2,
                    auc=estimate_over(known, level),
                )
            )
    return rows


def clipped(low: float | None, high: float | None) -> tuple[float | None, float | None]:
    """Return the ends of an interval within [0, 1]."""
    return None if low is None else max(0.0, low), None if high is None else min(1.0, high)


def pool_area(rows: Columns) -> float | None:
    """Return the mean AUC over the targets of one pool; None where a target has canaries on one side alone."""
    areas = []
    for target in np.unique(rows["target"]):
        own = rows["target"] == target
        if 0 < rows["member"][own].sum() < own.sum():
            areas.append(auc(rows["score"][own], rows["member"][own]))
    return float(np.mean(areas)) if areas else None


def estimate_over(values: Sequence[float], level: float) -> Estimate:
    """Return the mean of one value per pool with its t interval; without one where there is a single pool."""
    ends = ibragimov_mueller_t(values, level) if len(values) > 1 else (None, None)
    return Estimate(float(np.mean(values)), *clipped(*ends))
