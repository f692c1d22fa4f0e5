"""A sweep over seeds: means over its settings, which draw points and models anew."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from orchestrator.report.by_setting import Grid
from orchestrator.report.membership.glossary import words
from orchestrator.report.membership.reading import MembershipRun
from orchestrator.report.tables import short

HEAD = ("selection", "attack", "|Q|", "precision", "lowest–highest", "coverage", "FPR", "fresh FPR")


def seeds_grids(run: MembershipRun) -> list[Grid]:
    """Return means over seeds, a table for each group of settings that differ in the seed alone and have two or more.

    Nothing where a setting keeps the plan's seed, or a group has a single seed.
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for entry in run.result["settings"]:
        if "seed" not in entry["overrides"]:
            return []
        others = {path: value for path, value in entry["overrides"].items() if path != "seed"}
        groups.setdefault(json.dumps(others, sort_keys=True), []).append(entry)
    if any(len(entries) < 2 for entries in groups.values()):
        return []
    return [seeds_grid(run, entries, titled=len(groups) > 1) for entries in groups.values()]


def seeds_grid(run: MembershipRun, entries: Sequence[Mapping[str, Any]], *, titled: bool) -> Grid:
    """Return means over the settings ``entries`` with t intervals, cell by cell; ``titled``: with what they share.

    A cell whose precision is 0/0 at one of the seeds is left out.
    """
    names = {entry["setting"] for entry in entries}
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for cell in (cell for cell in run.result["table"] if cell["setting"] in names):
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
    title = f"Means over {len(entries)} seeds [95 % over seeds]"
    shared = str(entries[0]["setting"]).rpartition("/")[0] if titled else ""
    return Grid(f"{shared}: {title}" if shared else title, list(HEAD), rows)


def over_seeds(cells: list[dict[str, Any]], name: str) -> str:
    """Return ``mean [low, high]`` of a rate, a t interval within [0, 1]; a dash where a seed has none."""
    from scipy import stats

    values = [cell[name] for cell in cells]
    if any(value is None for value in values):
        return "–"
    mean = float(np.mean(values))
    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return f"{short(mean)} [{short(max(0.0, mean - half))}, {short(min(1.0, mean + half))}]"
