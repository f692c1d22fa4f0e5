"""The page of a TMIA run: figures and one HTML file, and its tables for documents and terminals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.report import writing
from orchestrator.report.controls import controls_grid
from orchestrator.report.metrics import rows_of
from orchestrator.report.numbers import percent
from orchestrator.report.page import RunPage
from orchestrator.report.pictures import Images, pixels_of
from orchestrator.report.result import look_up
from orchestrator.tmia.page import curves, figures
from orchestrator.tmia.page.given import own_model_grids
from orchestrator.tmia.page.glossary import GLOSSARY, MODES
from orchestrator.tmia.page.reading import read_tmia_run
from orchestrator.tmia.page.tables import (
    all_grids,
    cell_grid,
    fit_grid,
    overfitted_grid,
    overview_grid,
    recognised_grids,
    selection_grid,
    terminal_grids,
)
from orchestrator.tmia.page.verdict import verdict
from orchestrator.tmia.result.given_rows import GivenResult, result_form
from orchestrator.tmia.result.rows import RecognisedPoint
from orchestrator.tmia.result.run import TmiaRun
from orchestrator.tmia.result.words import words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from audits.data.dataset import Dataset


def fill(run: TmiaRun, out: Path, images: Images) -> Path:
    """Write figures and page of a run under ``out``; ``images`` are shown beside exposed points."""
    return writing.write_page(
        out,
        "orchestrator.tmia.page",
        run.result,
        draw(run, out / "figures"),
        answer=run.result.verdict,
        named=words,
        verdict=verdict(run),
        asked=[(name, run.mode(name), MODES.get(run.mode(name), "")) for name in run.shown],
        effort=_effort(run),
        level=percent(run.level, 0),
        settings=run.shown,
        cells=[cell_grid(run, name) for name in run.shown],
        overview=overview_grid(run),
        fit=fit_grid(run),
        selections=selection_grid(run),
        recognised=recognised_grids(run, images),
        own_models=own_model_grids(run),
        all_controls=controls_grid(run.result.controls, words),
        overfitted=overfitted_grid(run),
        given=isinstance(run.result, GivenResult),
        glossary=GLOSSARY,
    )


def images(document: Mapping[str, Any], data: Callable[[], Dataset]) -> Images:
    """Return the pictures of the exposed points, by point id."""
    points = [point.point_id for point in rows_of(document, "exposed", RecognisedPoint)]
    return pixels_of(points, data()) if points else {}


def draw(run: TmiaRun, folder: Path) -> dict[str, str]:
    """Write every figure that the run has something for, and return them as SVG elements by name."""
    makers: dict[str, Callable[[], Figure | None]] = {}
    for place, name in enumerate(run.shown):
        makers[f"rates_{place}"] = lambda name=name: figures.precision_and_coverage(run, name)  # type: ignore[misc]  # a default binds the loop's value
        makers[f"control_{place}"] = lambda name=name: figures.false_positive_rates(run, name)  # type: ignore[misc]  # likewise
    makers |= {
        "frozen_layers": lambda: curves.frozen_layers(run),
        "sweep": lambda: curves.sweep_curves(run),
        "confidence": lambda: figures.confidences(run),
        "loss": lambda: figures.losses(run),
        "reconstruction": lambda: figures.reconstruction(run),
    }
    return writing.draw(makers, folder)


def lines(run: TmiaRun) -> list[str]:
    """Return no line beside the verdict: its control says what is void, and a warning where."""
    return []


def _effort(run: TmiaRun) -> str:
    """Return data, model, numbers of models and seconds in one line."""
    plan = run.result.plan
    named = {
        "targets": "targets",
        "reference_models": "reference models",
        "null_models": "null models",
        "overfitted_models": "over-fitted models",
        "candidates": "candidates",
    }
    parts = [f"{look_up(plan, 'model.name')} on {look_up(plan, 'data.name')}"]
    if isinstance(run.result, GivenResult):
        parts.append(f"a given model, {look_up(plan, 'target.controls')} controls")
        named = {name: text for name, text in named.items() if name not in ("targets", "overfitted_models")}
    parts += [f"{size} {text}" for name, text in named.items() if (size := look_up(plan, f"split.{name}"))]
    return writing.effort(run.result, parts)


PAGE = RunPage(
    read_tmia_run, TmiaRun.of, fill, images, all_grids, terminal_grids, lines,
    form=lambda document: result_form(document["plan"]),
)  # fmt: skip
