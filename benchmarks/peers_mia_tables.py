"""The record of the benchmark against peers as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.record import described, number, table

RATES = (0.01, 0.05)
ERROR = 0.05


def tables(record: Mapping[str, Any]) -> str:
    """Return the record as Markdown."""
    rows = [
        [
            one["name"],
            ends(one["auc"]),
            f"{ends(one['difference'], '+.4f')}: {verdict(one['difference'])}" if one["package"] else "–",
            f"{one['difference']['p_holm']:.2g}" if one["package"] else "–",
            *(f"{one[f'roc_tpr_{rate:g}']['mean']:.3f}" for rate in RATES),
            number(one["cpu_seconds"]),
            number(one["seconds_ratio"]) if one["package"] else "–",
        ]
        for one in record["attacks"]
    ]
    first = table(
        ["attack", "AUC", "AUC of ours − its, paired", "p (Holm)", "TPR at 1 % FPR, off the ROC", "at 5 %",
         "CPU seconds a target", "its / ours"], rows,
    )  # fmt: skip
    shares = [(what, rate) for rate in RATES for what in ("tpr", "fpr")]
    second = table(
        ["ours, with thresholds", *(f"{what.upper()} at a promised {rate:.0%}" for what, rate in shares),
         "CPU seconds a target"],
        [[one["name"], *(ends(one[f"{what}_{rate:g}"]) for what, rate in shares), number(one["cpu_seconds"])]
         for one in record["promised"]],
    )  # fmt: skip
    peers = ", ".join(f"{name} {found}" for name, found in record["peers"].items()) or "no peer installed"
    facts = (
        f"{record['plan']}: {record['pools']} pools, {record['targets']} targets, {record['shadows']} shadows a pool, "
        f"{record['points']} points each; {peers}.\n"
    )
    return described(record) + "\n" + facts + "\n" + first + "\n\n" + second


def verdict(difference: Mapping[str, float]) -> str:
    """Return on which side of the peer ours is, if a test at 5 % over all comparisons (Holm) leaves no doubt."""
    if difference["p_holm"] > ERROR:
        return "no difference"
    return "**ours higher**" if difference["mean"] > 0 else "**ours lower**"


def ends(value: Mapping[str, float], form: str = ".3f") -> str:
    """Return a number with its interval."""
    return f"{value['mean']:{form}} [{value['low']:{form}}, {value['high']:{form}}]"
