"""A sweep over seeds: means over its settings, which draw points and models anew."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np

from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.wording import DASH
from orchestrator.report.grid import Grid, grid, left
from orchestrator.report.numbers import VOID, estimate, number
from orchestrator.tmia.result.rows import TmiaCell, TmiaSetting
from orchestrator.tmia.result.run import TmiaRun
from orchestrator.tmia.result.words import words


def seeds_grids(run: TmiaRun) -> list[Grid]:
    """Return means over seeds, a table for each group of settings that differ in the seed alone and have two or more.

    Nothing where a setting keeps the plan's seed, or a group has a single seed.
    """
    groups: dict[str, list[TmiaSetting]] = {}
    for entry in run.result.settings:
        if "seed" not in entry.overrides:
            return []
        others = {path: value for path, value in entry.overrides.items() if path != "seed"}
        groups.setdefault(json.dumps(others, sort_keys=True), []).append(entry)
    if any(len(entries) < 2 for entries in groups.values()):
        return []
    return [seeds_grid(run, entries, titled=len(groups) > 1) for entries in groups.values()]


def seeds_grid(run: TmiaRun, entries: Sequence[TmiaSetting], *, titled: bool) -> Grid:
    """Return means over the settings ``entries`` with t intervals, cell by cell; ``titled``: with what they share.

    A cell whose precision is 0/0 at one of the seeds is left out; one that is void at one of them is void.
    """
    names = {entry.setting for entry in entries}
    cells: dict[tuple[str, str], list[TmiaCell]] = {}
    for cell in (cell for cell in run.result.table if cell.setting in names):
        cells.setdefault((cell.selection, cell.attack), []).append(cell)
    rows = []
    for (selection, attack), own in cells.items():
        precision = [cell.precision.value for cell in own if cell.precision.value is not None]
        if len(precision) < len(own):
            continue
        void = any(cell.void for cell in own)
        counts = sorted({cell.candidates for cell in own})
        rows.append(
            [
                words(selection),
                words(attack),
                "–".join(str(count) for count in dict.fromkeys((counts[0], counts[-1]))),
                VOID if void else over_seeds(own, lambda cell: cell.precision),
                VOID if void else f"{number(min(precision))}–{number(max(precision))}",
                VOID if void else over_seeds(own, lambda cell: cell.coverage),
                over_seeds(own, lambda cell: cell.fpr),
                DASH if own[0].promised is None else over_seeds(own, lambda cell: cell.null_fpr),
            ]
        )
    title = f"Means over {len(entries)} seeds [95 % over seeds]"
    shared = entries[0].setting.rpartition("/")[0] if titled else ""
    columns = [left("selection"), left("attack"), "|Q|", "precision", "lowest–highest", "coverage", "FPR", "null FPR"]
    return grid(f"seeds-{shared}".rstrip("-"), f"{shared}: {title}" if shared else title, columns, rows)


def over_seeds(cells: Sequence[TmiaCell], rate: Callable[[TmiaCell], Estimate]) -> str:
    """Return ``mean [low, high]`` of a rate, a t interval within [0, 1]; a dash where a seed has none."""
    from scipy import stats

    values = [float(rate(cell)) for cell in cells]
    if np.isnan(values).any():
        return DASH
    mean = float(np.mean(values))
    half = float(stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))
    return estimate(Estimate(mean, max(0.0, mean - half), min(1.0, mean + half)))
