"""The page of a toy run."""

from __future__ import annotations

from pathlib import Path

from orchestrator.engine.kind import Images
from orchestrator.report.grid import Column, Entry, Grid, Group
from orchestrator.report.numbers import number
from orchestrator.report.page import RunPage
from orchestrator.report.result import read_run, run_of
from orchestrator.report.writing import write_page
from tests.orchestrator.toy.result import ToyResult


def grid(run: ToyResult) -> Grid:
    """Return the table of the result."""
    lines = tuple((Entry(row.setting), Entry(row.attack), Entry(number(row.auc))) for row in run.table)
    columns = (Column("setting", "left"), Column("attack", "left"), Column("AUC"))
    return Grid("attacks", "AUC of members", columns, (Group("", lines),))


def fill(run: ToyResult, out: Path, images: Images) -> Path:
    """Write the page of a run into ``out``; return its file."""
    return write_page(out, "tests.orchestrator.toy", run, {}, verdict=[], grid=grid(run), glossary={})


PAGE = RunPage(
    read=lambda out: read_run(out, ToyResult),
    of=lambda document: run_of(document, ToyResult),
    fill=fill,
    images=lambda document, data: {},
    all_grids=lambda run: [grid(run)],
    terminal_grids=lambda run: [grid(run)],
    lines=lambda run: [],
    form=lambda document: ToyResult,
)
