"""What scores of points predict on the undefended model: correlations, bins, exposed points, curves along training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from orchestrator.disclosure.gathering import CORRELATION, RATE, Row, corrected, interval, mean, paired, pool_means
from orchestrator.disclosure.plan_checks import READS_MODE

SHOWN = 24
CONTROLS = ("loss_log", "gradient_norm_log", "loss_sum", "gradient_norm_sum", "final_loss", "gradient_norm")
"""Rankings without GNQ that one made of it is compared with: logarithmic sums, plain ones, and the trained model's."""


def correlations(pools: Sequence[Row], level: float) -> list[Row]:
    """Return the Spearman correlation of each score with each outcome, means over pools."""
    return [
        {
            "score": score,
            "control": score not in READS_MODE,
            "outcome": outcome,
            "pools": len(values),
            **interval(values, level, CORRELATION).named("spearman", "low", "high"),
        }
        for (score, outcome), values in by_outcome(pools).items()
    ]


def by_outcome(pools: Sequence[Row]) -> dict[tuple[str, str], list[float | None]]:
    """Return (score, outcome) → correlation by pool."""
    found: dict[tuple[str, str], list[list[float | None]]] = {}
    for pool in pools:
        for row in pool["correlations"]:
            found.setdefault((row["score"], row["outcome"]), []).append(row["spearman"])
    return {place: pool_means(values) for place, values in found.items()}


def gains(pools: Sequence[Row], level: float) -> list[Row]:
    """Return by how much scores made of GNQ predict better than controls, paired by pool; Holm by outcome."""
    found, rows = by_outcome(pools), []
    for score, outcome in found:
        if score in READS_MODE:
            for control in CONTROLS:
                values, others = found[score, outcome], found[control, outcome]
                if None in (*values, *others):
                    continue
                difference = paired(values, others, level)
                rows.append(
                    {
                        "score": score,
                        "control": control,
                        "outcome": outcome,
                        "difference": difference.mean,
                        "low": difference.low,
                        "high": difference.high,
                        "p": difference.p,
                    }
                )
    return corrected(rows, ("outcome",))


def bins(pools: Sequence[Row], plan: Any, level: float) -> list[Row]:
    """Return how well members of each bin of a score are told apart, means over pools."""
    rows = []
    for place, first in enumerate(pools[0]["bins"] if pools else ()):
        each = [pool["bins"][place]["auc"] for pool in pools]
        for index in range(plan.audit.bins):
            values = pool_means([[target[index] for target in targets] for targets in each])
            rows.append(
                {
                    "score": first["score"],
                    "rule": first["rule"],
                    "bin": index + 1,
                    "points": plan.split.train_size / plan.audit.bins,
                    **interval(values, level, RATE).named("auc", "low", "high"),
                }
            )
    return rows


def points(pools: Sequence[Row]) -> list[Row]:
    """Return the most exposed points of all targets."""
    every = [row for pool in pools for row in pool["points"]]
    ranked = sorted(every, key=lambda row: -(row["gnq_log"] if row["gnq_log"] is not None else row["loss_gap"]))
    return ranked[:SHOWN]


def traces(pools: Sequence[Row]) -> list[Row]:
    """Return quantiles along training, means over pools."""
    rows = []
    for place, first in enumerate(pools[0]["traces"] if pools else ()):
        each = [pool["traces"][place] for pool in pools]
        curves = {word: [mean(values) for values in zip(*(one[word] for one in each), strict=True)]
                  for word in ("low", "median", "high")}  # fmt: skip
        rows.append({"score": first["score"], "steps": first["steps"], **curves})
    return rows
