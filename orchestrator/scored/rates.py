"""Rows about decisions: at promised rates, by an attack's own rule, and what they are worth in a crowd."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from audits.arrays import Floats
from audits.errors import BadInput
from audits.statistics import intervals, roc
from audits.statistics.held_out import held_out_decisions
from audits.statistics.judged import Judged, rows_by
from audits.statistics.predictive_value import predictive_interval, predictive_value
from orchestrator.judgement.estimate import Estimate
from orchestrator.scored.options import DEFAULT_FPRS, Options
from orchestrator.scored.rows import DecisionRow, ValueRow

OWN_RULE = ""
HELD_OUT, GIVEN = "held out", "given"
PROMISED = re.compile(r"\d*\.?\d+(e-?\d+)?")
Counts = tuple[Floats, Floats, Floats, Floats]
"""Hits, members, alarms and non-members of each target (G,)."""


def promised(judged: Judged) -> dict[float, str]:
    """Return the rates that decisions in a table promise, and the names of these decisions."""
    return {float(name): name for name in judged.decisions if PROMISED.fullmatch(name)}


def rates_of(judged: Judged, options: Options) -> list[float]:
    """Return the false-positive rates to judge an attack at: those asked for, else those that its table promises,
    else the usual ones that its non-members resolve.

    Raises BadInput for one that was asked for and cannot be measured, and where there are too few non-members for any.
    """
    outside = int((~judged.member).sum())
    lowest = roc.EXPECTED_FALSE_POSITIVES / outside
    for rate in options.fprs:
        if roc.required_nulls(rate) > outside:
            raise BadInput(
                f"--fpr {rate:g} cannot be measured with {outside} non-members: that needs "
                f"{roc.required_nulls(rate)} of them ({roc.EXPECTED_FALSE_POSITIVES} expected false positives); ask "
                f"for at least {lowest:.3g}"
            )
    asked = options.fprs or tuple(promised(judged)) or DEFAULT_FPRS
    found = sorted({rate for rate in asked if roc.required_nulls(rate) <= outside})
    if found:
        return found
    if lowest > 0.5:
        raise BadInput(f"{outside} non-members are too few for any false-positive rate; judge 20 or more")
    return [float(np.ceil(lowest * 100) / 100)]


def decisions_at(judged: Judged, rate: float, seed: int) -> tuple[Floats, str]:
    """Return the probability (n,) of "member" at a promised rate, and where its threshold comes from."""
    name = promised(judged).get(rate)
    if name is not None:
        return judged.decisions[name], GIVEN
    return held_out_decisions(judged, rate, seed), HELD_OUT


def read_off(judged: Judged, rates: Sequence[float]) -> Floats:
    """Return the TPR (R,) of the judged points' own ROC at each rate, mean over targets."""
    curves = [roc.roc(judged.scores[rows], judged.member[rows]) for rows in rows_by(judged.target)]
    found: Floats = np.mean([roc.tpr_at_fpr(curve, np.array(rates)) for curve in curves], axis=0)
    return found


def counts_of(judged: Judged, decisions: Floats) -> Counts:
    """Return the calls of each unit that an interval lets vary."""
    parts = [(decisions[rows], judged.member[rows]) for rows in rows_by(judged.unit)]
    return (
        np.array([calls[own].sum() for calls, own in parts]),
        np.array([float(own.sum()) for _, own in parts]),
        np.array([calls[~own].sum() for calls, own in parts]),
        np.array([float((~own).sum()) for _, own in parts]),
    )


def rate(hits: Floats, sizes: Floats, level: float) -> Estimate:
    """Return a rate with its interval over targets, over points where there is one."""
    return Estimate(float(hits.sum() / sizes.sum()), *intervals.clustered_rate(hits, sizes, level))


def own_rule(judged: Judged, options: Options) -> tuple[list[DecisionRow], list[ValueRow]]:
    """Return the rows about an attack's own decisions; none where it has none."""
    if OWN_RULE not in judged.decisions:
        return [], []
    counts = counts_of(judged, judged.decisions[OWN_RULE])
    tpr, fpr = rate(*counts[:2], options.level), rate(*counts[2:], options.level)
    row = DecisionRow(setting=judged.setting, attack=judged.attack, tpr=tpr, fpr=fpr)
    return [row], values_of(judged, counts, None, options)


def values_of(judged: Judged, counts: Counts, promised_fpr: float | None, options: Options) -> list[ValueRow]:
    """Return the positive predictive value at each prior."""
    hits, members, alarms, others = counts
    tpr, fpr = float(hits.sum() / members.sum()), float(alarms.sum() / others.sum())
    rows = []
    for prior in options.priors:
        value = predictive_value(tpr, fpr, prior)
        ends = predictive_interval(*counts, prior, options.level) if value is not None else (None, None)
        rows.append(
            ValueRow(
                setting=judged.setting,
                attack=judged.attack,
                promised_fpr=promised_fpr,
                prior=prior,
                value=Estimate(value, *ends),
            )
        )
    return rows
