"""The page of a GNQ audit of a given model: one figure and one HTML file, and its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.gnq.given.page.figures import distribution
from orchestrator.gnq.given.page.tables import (
    all_grids,
    class_grid,
    group_grid,
    point_grid,
    separation_grid,
    target_grid,
    terminal_grids,
)
from orchestrator.gnq.given.page.words import GLOSSARY, ONE, verdict
from orchestrator.gnq.given.rows import GivenResult, PointRow
from orchestrator.report import writing
from orchestrator.report.controls import controls_grid
from orchestrator.report.metrics import rows_of
from orchestrator.report.numbers import percent
from orchestrator.report.page import RunPage
from orchestrator.report.pictures import Images, pixels_of
from orchestrator.report.result import of_setting, read_run, read_scores, run_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from audits.data.dataset import Dataset


def fill(run: GivenResult, out: Path, images: Images) -> Path:
    """Write the figure and the page of a run under ``out``; ``images`` are shown beside the most exposed points."""
    setting = run.main_setting
    makers: writing.Makers = {"distribution": lambda: distribution(uniqueness(out, setting), run.leverage)}
    if run.aggregate_only:  # its bins show single scores
        makers = {}
    return writing.write_page(
        out,
        "orchestrator.gnq.given.page",
        run,
        writing.draw(makers, out / "figures"),
        setting=setting,
        answer=run.verdict,
        verdict=verdict(run),
        effort=effort(run, setting),
        level=percent(run.level, 0),
        leverage=f"{run.leverage:g}",
        groups=group_grid(run, setting),
        separation=separation_grid(run, setting),
        classes=class_grid(run, setting),
        points=point_grid(run, setting, images),
        target=target_grid(run, setting),
        all_controls=controls_grid(run.controls),
        overview=[group_grid(run, each.setting) for each in run.settings if each.setting != setting],
        glossary=GLOSSARY,
    )


def uniqueness(out: Path, setting: str) -> dict[str, NDArray[np.float64]]:
    """Return the gradient uniqueness of the points of each group, from the scores of the run in ``out``."""
    table = read_scores(out, ["setting", "group", "uniqueness"])
    groups, values, settings = (table[name] for name in ("group", "uniqueness", "setting"))
    return {group: values[(groups == group) & (settings == setting)] for group in dict.fromkeys(groups.tolist())}


def effort(run: GivenResult, setting: str) -> str:
    """Return data, model, checkpoints and seconds in one line."""
    target = of_setting(run.targets, setting)[0]
    count = len(target.weights)
    parts = [
        f"{run.value(setting, 'model.name')} of {target.parameters} parameters on {run.value(setting, 'data.name')}",
        f"{count} checkpoints given" if count > 1 else f"given: {target.weights[0]}",
        "nothing was trained",
    ]
    return "; ".join([*parts, *([f"{run.seconds:.0f} s"] if run.seconds is not None else [])]) + "."


def images(document: Mapping[str, Any], data: Callable[[], Dataset]) -> Images:
    """Return the pictures of the most exposed points, by point id."""
    points = [point.point_id for point in rows_of(document, "points", PointRow)]
    return pixels_of(points, data()) if points else {}


PAGE = RunPage(
    read=lambda out: read_run(out, GivenResult),
    of=lambda document: run_of(document, GivenResult),
    fill=fill,
    images=images,
    all_grids=all_grids,
    terminal_grids=terminal_grids,
    lines=lambda run: [ONE],
    form=lambda document: GivenResult,
)
