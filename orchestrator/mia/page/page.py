"""The page of a membership run: figures and one HTML file, and its tables for documents and terminals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.mia.page import figures, sweeps
from orchestrator.mia.page.glossary import GLOSSARY, OF_POOLS
from orchestrator.mia.page.reading import MiaRun, read_mia_run
from orchestrator.mia.page.tables import (
    all_grids,
    attack_grid,
    blind_grid,
    canary_grid,
    discovery_grid,
    epsilon_grid,
    exposure_grid,
    fit_grid,
    own_grid,
    second_rate_grid,
    setting_grid,
    shadow_grid,
    terminal_grids,
)
from orchestrator.mia.page.verdict import luck, verdict
from orchestrator.mia.result.rows import ExposedPoint, MiaResult
from orchestrator.mia.result.words import words
from orchestrator.report import writing
from orchestrator.report.controls import controls_grid
from orchestrator.report.metrics import rows_of
from orchestrator.report.numbers import percent
from orchestrator.report.page import RunPage
from orchestrator.report.pictures import MOST_POINTS, Images, pixels_of

if TYPE_CHECKING:
    from audits.data.dataset import Dataset


def fill(run: MiaRun, out: Path, images: Images) -> Path:
    """Write figures and page of a run under ``out``; ``images`` are shown beside exposed points."""
    return writing.write_page(
        out,
        "orchestrator.mia.page",
        run.result,
        draw(run, out / "figures"),
        answer=run.result.verdict,
        named=words,
        verdict=verdict(run),
        effort=_effort(run),
        level=percent(run.level, 0),
        judge=words(run.judge),
        attacks=attack_grid(run),
        rates=[second_rate_grid(run, rate) for rate in run.rates[1:]],
        canaries=canary_grid(run),
        own=own_grid(run),
        blind=blind_grid(run),
        given=run.given,
        over=run.over,
        shadows=shadow_grid(run),
        epsilons=epsilon_grid(run),
        discoveries=discovery_grid(run),
        exposed=exposure_grid(run, images),
        fit=fit_grid(run),
        all_controls=controls_grid(run.result.controls, words),
        overview=setting_grid(run),
        glossary={term: text for term, text in GLOSSARY.items() if not (run.given and term in OF_POOLS)},
    )


def images(document: Mapping[str, Any], data: Callable[[], Dataset]) -> Images:
    """Return the pictures of the exposed points that the page lists, by point id."""
    points = [point.point_id for point in rows_of(document, "exposed", ExposedPoint)[:MOST_POINTS]]
    return pixels_of(sorted(set(points)), data()) if points else {}


def lines(run: MiaRun) -> list[str]:
    """Return what intervals about a given model are over; nothing else that the verdict does not say."""
    return [f"Scope: {luck(run).text}"] if run.given else []


def draw(run: MiaRun, folder: Path) -> dict[str, str]:
    """Write every figure that the run has something for, and return them as SVG elements by name."""
    makers: writing.Makers = {
        "forest": lambda: figures.forest(run),
        "roc": lambda: figures.roc_curves(run),
        "rates": lambda: figures.rates(run),
        "shadows": lambda: figures.shadows(run),
        "sweep": lambda: sweeps.sweep_curves(run),
    }
    return writing.draw(makers, folder)


def _effort(run: MiaRun) -> str:
    """Return data, model, numbers of models and seconds in one line."""
    value = run.result.value
    sizes = {name: value(run.main_setting, f"split.{name}") for name in ("pools", "train_size", "shadows")}
    parts = [f"{value(run.main_setting, 'model.name')} on {value(run.main_setting, 'data.name')}"]
    if run.blind is not None:
        parts.append(f"a given model, asked about {run.blind.points} points of which half are its members")
        parts.append(f"{sizes['shadows']} shadow models")
        return writing.effort(run.result, parts)
    pools = "pool" if sizes["pools"] == 1 else "pools"
    parts.append(f"{sizes['pools']} {pools}, each cut into two targets of {sizes['train_size']} points")
    parts.append(f"{sizes['shadows']} shadow models a pool")
    return writing.effort(run.result, parts)


PAGE = RunPage(read_mia_run, MiaRun.of, fill, images, all_grids, terminal_grids, lines, form=lambda document: MiaResult)
