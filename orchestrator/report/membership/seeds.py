"""A sweep over seeds: means over its settings, which draw points and models anew."""

from __future__ import annotations

from typing import Any

import numpy as np

from orchestrator.report.by_setting import Grid
from orchestrator.report.membership.glossary import words
from orchestrator.report.membership.reading import MembershipRun
from orchestrator.report.tables import short

HEAD = ("selection", "attack", "|Q|", "precision", "lowest–highest", "coverage", "FPR", "fresh FPR")


def seeds_grid(run: MembershipRun) -> Grid | None:
    """Return means over seeds with t intervals, cell by cell; None for a run whose settings differ in anything else.

    A cell whose precision is 0/0 at one of the seeds is left out.
    """
    entries = run.result["settings"]
    if len(entries) < 2 or any(set(entry["overrides"]) != {"seed"} for entry in entries):
        return None
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for cell in run.result["table"]:
        cells.setdefault((cell["selection"], cell["attack"]), []).append(cell)
    rows = []
    for (selection, attack), own in cells.items():
        precision = [cell["precision"] for cell in own]
        if any(value is None for value in precision):
            continue
        counts = sorted({cell["candidates"] for cell in own})
        control = over_seeds(own, "fresh_fpr") if own[0]["expected_false_positives"] is not None else "–"
        rows.append(
            [
                words(selection),
                words(attack),
                "–".join(str(count) for count in dict.fromkeys((counts[0], counts[-1]))),
                over_seeds(own, "precision"),
                f"{short(min(precision))}–{short(max(precision))}",
                over_seeds(own, "coverage"),
                over_seeds(own, "fpr"),
                control,
            ]
        )
    return Grid(f"Means over {len(entries)} seeds [95 % over seeds]", list(HEAD), rows)


def over_seeds(cells: list[dict[str, Any]], name: str) -> str:
    """Return ``mean [low, high]`` of a rate, a t interval within [0, 1]; a dash where a seed has none."""
    from scipy import stats

    values = [cell[name] for cell in cells]
    if any(value is None for value in values):
        return "–"
    mean = float(np.mean(values))
    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return f"{short(mean)} [{short(max(0.0, mean - half))}, {short(min(1.0, mean + half))}]"
