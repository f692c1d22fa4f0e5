"""Scores of points beside what shadows say of them: part of stage assess, on the undefended model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.gnq.triage import bin_aucs, loss_gap, vulnerability
from audits.statistics.rank_correlation import spearman
from audits.uniqueness.bits import bits_upper
from audits.uniqueness.rankings import RANKINGS, readable
from orchestrator.gnq.plan import FIRST, READS_MODE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from audits.gnq.answers import GroupAuc
    from audits.uniqueness.accumulate import Trace
    from orchestrator.gnq.design import GnqDesign
    from orchestrator.gnq.stages.scene import Scene

    Floats = NDArray[np.float64]

QUANTILES = {"low": 0.1, "median": 0.5, "high": 0.9}
SHOWN = 24
OF_POINTS = ("gnq_log", "pinv_log", "gnq_final", "diagonal")
"""Rankings that are told of each exposed point."""


def ranked(design: GnqDesign, pool: int, traces: Sequence[Trace]) -> dict[str, Floats]:
    """Return every ranking that the plan's modes allow, (2, 2n) float64, NaN at points that a target did not see."""
    found = {}
    targets = design.of(pool, "target")
    for name in RANKINGS:
        unseen = not all(readable(name, trace) for trace in traces)
        if unseen or READS_MODE.get(name, design.plan.audit.modes[0]) not in design.plan.audit.modes:
            continue
        scores = np.full((2, len(targets[0].half)), np.nan)
        for row, model, trace in zip(scores, targets, traces, strict=True):
            row[model.half] = RANKINGS[name](trace, model.seed)
        found[name] = scores
    return found


def bits_column(design: GnqDesign, pool: int, traces: Sequence[Trace]) -> dict[str, Floats]:
    """Return "bits" (2 · 2n,), NaN at points that a target did not see; nothing where neither mode tells bits."""
    found = [np.full(len(model.half), np.nan) for model in design.of(pool, "target")]
    for row, model, trace in zip(found, design.of(pool, "target"), traces, strict=True):
        bits = bits_of(trace)
        if bits is None:
            return {}
        row[model.half] = bits
    return {"bits": np.concatenate(found)}


def bits_of(trace: Trace) -> Floats | None:
    """Return the bits (n,) that training tells of each point, by mode ridge, else by pinv; None without both."""
    mode = next((name for name in ("ridge", "pinv") if name in trace.gnq), None)
    return None if mode is None else bits_upper(trace.gnq[mode], trace.weights)


def predictions(
    design: GnqDesign,
    pool: int,
    scene: Scene,
    scores: Mapping[str, Floats],
    judged: Sequence[GroupAuc],
    traces: Sequence[Trace],
) -> dict[str, Any]:
    """Return how scores of points go with what shadows say of them, by rank and by bins, and the exposed points."""
    half = scene.after.half
    outcomes = {
        "loss_gap": loss_gap(scene.naive.logits, scene.naive.half, scene.labels),
        "lira": vulnerability(scene.naive.logits, scene.naive.half, scene.labels),
    }
    attack = [each.scores for each in judged if each.attack == "lira" and each.shadows == "naive"]
    return {
        "correlations": [
            {"score": name, "outcome": outcome, "spearman": listed(spearman(values, gaps, half))}
            for name, values in scores.items()
            for outcome, gaps in outcomes.items()
        ],
        "bins": [
            {"score": name, "rule": rule, "auc": bin_aucs(values, attack[0], half, design.plan.audit.bins, rule)
             .tolist()}
            for name, values in scores.items()
            for rule in ("same", "all")
            if attack
        ],
        "points": exposed(design, pool, scores, outcomes["loss_gap"], traces),
        "traces": along(traces),
    }  # fmt: skip


def exposed(
    design: GnqDesign, pool: int, scores: Mapping[str, Floats], gap: Floats, traces: Sequence[Trace]
) -> list[dict[str, Any]]:
    """Return the points of highest Σ ½·log2(1 + GNQ), by the first of ``FIRST`` that there is."""
    first = next(name for name in FIRST if name in scores)
    ids = design.drawn.pools[pool]
    rows: list[tuple[float, dict[str, Any]]] = []
    for twin, (model, trace) in enumerate(zip(design.of(pool, "target"), traces, strict=True)):
        own = np.flatnonzero(model.half)
        order = np.argsort(-scores[first][twin, own], kind="stable")
        bits = bits_of(trace)
        for rank, place in enumerate(order[:SHOWN], start=1):
            point = own[place]
            told = {
                "pool": pool,
                "point_id": int(ids[point]),
                "label": str(design.data.classes[design.data.labels[ids[point]]]),
                "rank": rank,
                "of": len(own),
                "ranked_by": first,
                **{name: float(scores[name][twin, point]) if name in scores else None for name in OF_POINTS},
                "bits": None if bits is None else float(bits[place]),
                "squared_norm": float(trace.squared_norm[-1][place]),
                "loss": float(trace.loss[-1][place]),
                "loss_gap": float(gap[point]),
            }
            rows.append((float(scores[first][twin, point]), told))
    return [told for _, told in sorted(rows, key=lambda row: -row[0])[:SHOWN]]


def along(traces: Sequence[Trace]) -> list[dict[str, Any]]:
    """Return quantiles over the points at each checkpoint, means over targets."""
    seen = {"loss": [trace.loss for trace in traces], "squared_norm": [trace.squared_norm for trace in traces]}
    if all("ridge" in trace.gnq for trace in traces):
        seen["gnq"] = [trace.gnq["ridge"] for trace in traces]
    return [
        {
            "score": name,
            "steps": traces[0].steps.tolist(),
            **{word: np.mean([np.quantile(one, q, axis=1) for one in each], axis=0).tolist()
               for word, q in QUANTILES.items()},
        }
        for name, each in seen.items()
    ]  # fmt: skip


def listed(values: Floats) -> list[float | None]:
    """Return numbers as a list; NaN becomes null."""
    return [None if np.isnan(value) else float(value) for value in values]
