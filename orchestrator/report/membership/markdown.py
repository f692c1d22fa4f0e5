"""The tables of a membership run as Markdown, for documents: ``orch report RUN --markdown``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from orchestrator.report.by_setting import Grid
from orchestrator.report.markdown import as_markdown
from orchestrator.report.membership.reading import MembershipRun
from orchestrator.report.membership.seeds import seeds_grids
from orchestrator.report.membership.tables import cell_grid, fit_grid, overview_grid, selection_grid


def membership_markdown(document: Mapping[str, Any]) -> str:
    """Return the tables of a result (the content of result.json): settings, seeds, cells, selections, fit."""
    run = MembershipRun(document)
    grids = [overview_grid(run), *seeds_grids(run), *(cell_grid(run, setting, intervals=True) for setting in run.shown)]
    grids += [selection_grid(run), fit_grid(run)]
    return "\n\n".join(as_markdown(_escaped(grid)) for grid in grids if grid) + "\n"


def _escaped(grid: Grid) -> Grid:
    """Return a grid whose words cannot end a cell: |Q| is written with its bars escaped."""
    rows = [[cell.replace("|", "\\|") for cell in row] for row in grid.rows]
    return Grid(grid.title, [name.replace("|", "\\|") for name in grid.head], rows)
