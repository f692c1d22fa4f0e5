"""Rows about scores of points on the undefended model: correlations, bins, exposed points, curves along training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from orchestrator.gnq.plan import NONE, READS_MODE
from orchestrator.gnq.result.gather import CORRELATION, RATE, Found, corrected, interval, mean, paired, pool_means
from orchestrator.gnq.result.rows import BinRow, ExposedPointRow, GainRow, LevelRow, ScoreCorrelation, TraceRow
from orchestrator.report.rows import read_rows

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN = 24
CONTROLS = (
    "loss_log",
    "gradient_norm_log",
    "loss_sum",
    "gradient_norm_sum",
    "final_loss",
    "gradient_norm",
    "twin_loss",
    "held_out_loss",
)
"""Rankings without GNQ that one made of it is compared with, where the run has them: logarithmic sums, plain ones, the
trained model's, and losses under models that did not train on the point."""


def correlations(setting: str, pools: Sequence[Found], level: float) -> list[ScoreCorrelation]:
    """Return the Spearman correlation of each score with each outcome, means over pools."""
    return [
        ScoreCorrelation(
            setting=setting,
            score=score,
            control=score not in READS_MODE,
            outcome=outcome,
            pools=len(values),
            spearman=interval(values, level, CORRELATION),
        )
        for (score, outcome), values in by_outcome(pools).items()
    ]


def by_outcome(pools: Sequence[Found]) -> dict[tuple[str, str], list[float | None]]:
    """Return (score, outcome) → correlation by pool."""
    found: dict[tuple[str, str], list[list[float | None]]] = {}
    for pool in pools:
        for row in pool["correlations"]:
            found.setdefault((row["score"], row["outcome"]), []).append(row["spearman"])
    return {place: pool_means(values) for place, values in found.items()}


def gains(setting: str, pools: Sequence[Found], level: float) -> list[GainRow]:
    """Return by how much scores made of GNQ predict better than controls, paired by pool; Holm by outcome."""
    found, rows = by_outcome(pools), []
    for score, outcome in found:
        if score in READS_MODE:
            for control in (name for name in CONTROLS if (name, outcome) in found):
                values, others = found[score, outcome], found[control, outcome]
                if None in (*values, *others):
                    continue
                difference, p = paired(values, others, level)
                rows.append(
                    GainRow(setting=setting, score=score, control=control, outcome=outcome, difference=difference, p=p)
                )
    return corrected(rows, ("outcome",))


def bins(setting: str, pools: Sequence[Found], plan: Any, level: float) -> list[BinRow]:
    """Return how well members of each bin of a score are told apart, means over pools."""
    rows = []
    for place, first in enumerate(pools[0]["bins"] if pools else ()):
        each = [pool["bins"][place]["auc"] for pool in pools]
        for index in range(plan.audit.bins):
            values = pool_means([[target[index] for target in targets] for targets in each])
            rows.append(
                BinRow(
                    setting=setting,
                    score=first["score"],
                    rule=first["rule"],
                    bin=index + 1,
                    points=plan.split.train_size / plan.audit.bins,
                    auc=interval(values, level, RATE),
                )
            )
    return rows


def levels(setting: str, scores: pa.Table, level: float) -> list[LevelRow]:
    """Return the median of each score of GNQ over a target's own points, means over pools, from the table of scores."""
    import pyarrow.compute as pc

    here = pc.and_(pc.equal(scores["setting"], setting), pc.equal(scores["arm"], NONE))
    own = scores.filter(pc.and_(here, scores["member"]))
    rows = []
    for score in READS_MODE:
        if (column := f"rank_{score}") not in own.column_names or own[column].null_count == len(own):
            continue
        medians: dict[int, dict[int, float]] = {}
        for pool, twin in sorted(set(zip(own["pool"].to_pylist(), own["twin"].to_pylist(), strict=True))):
            target = own.filter(pc.and_(pc.equal(own["pool"], pool), pc.equal(own["twin"], twin)))
            medians.setdefault(pool, {})[twin] = float(np.median(target[column].to_numpy()))
        values = pool_means([list(twins.values()) for twins in medians.values()])
        rows.append(LevelRow(setting=setting, score=score, median=interval(values, level, (0.0, math.inf))))
    return rows


def points(setting: str, pools: Sequence[Found]) -> tuple[ExposedPointRow, ...]:
    """Return the most exposed points of all targets."""
    every = sorted((row for pool in pools for row in pool["points"]), key=lambda row: -float(row[row["ranked_by"]]))
    return read_rows(ExposedPointRow, ({"setting": setting, **row} for row in every[:SHOWN]), "points")


def traces(setting: str, pools: Sequence[Found]) -> list[TraceRow]:
    """Return quantiles along training, means over pools."""
    rows = []
    for place, first in enumerate(pools[0]["traces"] if pools else ()):
        each = [pool["traces"][place] for pool in pools]
        curves = {
            word: tuple(mean(values) for values in zip(*(one[word] for one in each), strict=True))
            for word in ("low", "median", "high")
        }
        rows.append(TraceRow(setting=setting, score=first["score"], steps=tuple(first["steps"]), **curves))
    return rows
