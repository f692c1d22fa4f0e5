"""Sums over the pools of a drawn GNQ run: intervals, paired differences, correlations, bins."""

from __future__ import annotations

import numpy as np
from scipy import stats

from audits.statistics.intervals import ibragimov_mueller_t
from audits.statistics.roc import auc

AGAINST = ("none", "random-0.2", "loss_log-0.2")


def estimate(name: str, values) -> dict:
    """Return the mean of a value a pool with its t interval, null where there is none."""
    numbers = np.asarray(values, float)
    undefined = bool(np.isnan(numbers).any())
    low, high = (None, None) if undefined or numbers.size < 2 else ibragimov_mueller_t(numbers)
    return {name: None if undefined else float(numbers.mean()), f"{name}_low": low, f"{name}_high": high}


def difference(values) -> dict:
    """Return the mean of paired differences, interval and p-value; p_holm follows once all are known."""
    spread = estimate("", values)
    numbers = np.asarray(values, float)
    p = None if spread["_low"] is None else float(stats.ttest_1samp(numbers, 0.0).pvalue)
    return {"difference": spread[""], "low": spread["_low"], "high": spread["_high"], "p": p, "p_holm": None}


def comparison_rows(found: dict[tuple, np.ndarray], arms: list[dict]) -> list[dict]:
    """Return arm − other for contributors after the defence; the undefended arm is judged with naive shadows."""
    names = [arm["arm"] for arm in arms]
    accuracy = {arm["arm"]: arm["test_accuracy"] for arm in arms}
    rows = []
    for arm in names:
        for other in AGAINST:
            if arm in (other, "none") or other not in names:
                continue
            for attack, shadows in (("loss", "none"), ("lira", "adaptive")):
                theirs = "naive" if other == "none" and attack == "lira" else shadows
                own = found[arm, "contributors", attack, shadows, "after"].mean(1)
                base = found[other, "contributors", attack, theirs, "after"].mean(1)
                row = {"arm": arm, "against": other, "group": "contributors", "attack": attack, "shadows": shadows}
                gap = accuracy[arm] - accuracy[other]
                ends = (None, None) if len(own) < 2 else (gap - 0.01, gap + 0.01)
                row |= {"accuracy_difference": gap, "accuracy_low": ends[0], "accuracy_high": ends[1]}
                rows.append(row | difference(own - base))
    return rows


def predicted(watched: list) -> dict[tuple[str, str], np.ndarray]:
    """Return (score, outcome) → Spearman correlation within each target's own points, mean over twins, (pools,)."""
    found: dict[tuple[str, str], list] = {}
    for scores, shadows, targets in watched:
        inside = np.where(shadows.half, shadows.confidence, np.nan)
        outside = np.where(shadows.half, np.nan, shadows.confidence)
        gap = np.nanmean(inside, 0) - np.nanmean(outside, 0)
        outcomes = {"loss_gap": gap, "lira": gap / np.sqrt(np.nanvar(inside, 0) + np.nanvar(outside, 0))}
        for name, score in scores.items():
            for outcome, value in outcomes.items():
                own = zip(score, targets.half, strict=True)
                each = [stats.spearmanr(row[half], value[half]).statistic for row, half in own]
                found.setdefault((name, outcome), []).append(float(np.mean(each)))
    return {place: np.array(values) for place, values in found.items()}


def correlation_rows(watched: list, controls: tuple[str, ...]) -> list[dict]:
    """Return the rows of ``correlations``."""
    rows = []
    for (score, outcome), values in predicted(watched).items():
        spread = estimate("", values)
        row = {"score": score, "control": score in controls, "outcome": outcome, "pools": len(values)}
        rows.append(row | {"spearman": spread[""], "low": spread["_low"], "high": spread["_high"]})
    return rows


def gain_rows(watched: list, controls: tuple[str, ...]) -> list[dict]:
    """Return the rows of ``gains``: each score of GNQ minus each control."""
    found = predicted(watched)
    return [
        {"score": score, "control": control, "outcome": outcome, **difference(values - found[control, outcome])}
        for (score, outcome), values in found.items()
        for control in controls
        if score not in controls
    ]


def bin_rows(watched: list, bins: int = 5) -> list[dict]:
    """Return the AUC of the confidence by bin of each score, against the twin's same bin and all of the twin's."""
    found: dict[tuple[str, str, int], list] = {}
    for scores, _, targets in watched:
        for name, score in scores.items():
            for twin in (0, 1):
                sides = [np.flatnonzero(targets.half[place]) for place in (twin, 1 - twin)]
                parts = [
                    np.array_split(own[np.argsort(score[place][own])], bins)
                    for own, place in zip(sides, (twin, 1 - twin), strict=True)
                ]
                for number in range(bins):
                    for rule, others in (("same", parts[1][number]), ("all", sides[1])):
                        rows = np.concatenate([parts[0][number], others])
                        member = np.arange(len(rows)) < len(parts[0][number])
                        value = auc(targets.confidence[twin][rows], member)
                        found.setdefault((name, rule, number), []).append(value)
    size = len(watched[0][2].half[0]) / 2 / bins
    rows = []
    for (score, rule, number), values in found.items():
        spread = estimate("", np.array(values).reshape(-1, 2).mean(1))
        row = {"score": score, "rule": rule, "bin": number + 1, "points": size}
        rows.append(row | {"auc": spread[""], "low": spread["_low"], "high": spread["_high"]})
    return rows
