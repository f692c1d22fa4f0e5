"""The tables of a disclosure run as Markdown, for documents: ``orch report RUN --markdown``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.report.by_setting import Grid
from orchestrator.report.disclosure import inversion, predictions, sweeps, tables
from orchestrator.report.disclosure.reading import DisclosureRun
from orchestrator.report.markdown import as_markdown


def disclosure_markdown(document: Mapping[str, Any]) -> str:
    """Return the tables of a result (the content of result.json): all settings, then each setting in full."""
    run = DisclosureRun(document)
    grids: list[Grid | None] = [sweeps.cut_grid(run) or tables.setting_grid(run), predictions.setting_grid(run)]
    grids += [sweeps.level_grid(run), sweeps.bin_setting_grid(run)]
    for setting in run.settings:
        grids += [tables.frontier_grid(run, setting), tables.difference_grid(run, setting)]
        grids += [tables.ways_grid(run, setting, arm) for arm in run.arms(setting)]
        grids += [
            tables.removed_grid(run, setting),
            tables.onion_grid(run, setting),
            predictions.bin_grid(run, setting),
        ]
        grids += [
            predictions.correlation_grid(run, setting),
            predictions.gain_grid(run, setting),
            inversion.inversion_grid(run, setting),
            inversion.inversion_gain_grid(run, setting),
            tables.cell_grid(run, setting),
        ]
    return "\n\n".join(as_markdown(grid) for grid in grids if grid) + "\n"
