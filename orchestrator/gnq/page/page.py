"""The page of a GNQ run: figures and one HTML file, and its tables for documents and terminals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.gnq.page import figures, gradient_inversion, inversion, predictions, sweep_figures, sweeps
from orchestrator.gnq.page.frontier import frontier
from orchestrator.gnq.page.glossary import GLOSSARY
from orchestrator.gnq.page.reading import GnqRun, read_gnq_run
from orchestrator.gnq.page.tables import (
    all_grids,
    area_grid,
    arm_grid,
    difference_grid,
    onion_grid,
    point_grid,
    privacy_grid,
    removed_grid,
    setting_grid,
    terminal_grids,
    way_grid,
)
from orchestrator.gnq.page.verdict import REMOVAL, verdict
from orchestrator.gnq.result.rows import ExposedPointRow, GnqResult
from orchestrator.gnq.result.words import arm_words, words
from orchestrator.report import writing
from orchestrator.report.controls import controls_grid
from orchestrator.report.metrics import rows_of
from orchestrator.report.numbers import percent
from orchestrator.report.page import RunPage
from orchestrator.report.pictures import Images, pixels_of
from orchestrator.report.words import ranking_words

if TYPE_CHECKING:
    from audits.data.dataset import Dataset


def fill(run: GnqRun, out: Path, images: Images) -> Path:
    """Write figures and page of a run under ``out``; ``images`` are shown beside the most exposed points."""
    setting = run.main_setting
    inverted = inversion.inversion_grid(run, setting)
    gradients = [each for each in gradient_inversion.gradient_grids(run, setting) if each]
    return writing.write_page(
        out,
        "orchestrator.gnq.page",
        run.result,
        draw(run, out / "figures"),
        setting=setting,
        answer=run.result.verdict,
        named=words,
        verdict=verdict(run),
        effort=_effort(run, setting),
        level=percent(run.level, 0),
        judge=words(run.judge),
        arms=arm_grid(run, setting),
        all_controls=controls_grid(run.result.controls, words),
        differences=difference_grid(run, setting),
        privacy=privacy_grid(run, setting),
        ways=[grid for arm in run.arms(setting) if (grid := way_grid(run, setting, arm))],
        areas=area_grid(run, setting),
        removed=removed_grid(run, setting),
        onion=onion_grid(run, setting),
        bins=predictions.bin_grid(run, setting),
        correlations=predictions.correlation_grid(run, setting),
        gains=predictions.gain_grid(run, setting),
        points=point_grid(run, setting, images),
        ranked_by=ranking_words(run.main_score),
        inversion=inverted,
        inversion_gains=inversion.inversion_gain_grid(run, setting),
        pictures=inversion.inversion_pictures(run, setting),
        gradient_inversion=gradients,
        gradient_pictures=gradient_inversion.gradient_pictures(run, setting),
        overview=setting_grid(run),
        predicted=predictions.prediction_setting_grid(run),
        seeds=sweeps.seed_grid(run),
        levels=sweeps.level_grid(run),
        bin_settings=sweeps.bin_setting_grid(run),
        cuts=sweeps.cut_grid(run),
        without_headline=[arm_words(arm) for arm in run.arms(setting) if arm.headline is None],
        glossary=GLOSSARY | (inversion.TERMS if inverted else {}) | (gradient_inversion.TERMS if gradients else {}),
    )


def images(document: Mapping[str, Any], data: Callable[[], Dataset]) -> Images:
    """Return the pictures of the most exposed points, by point id."""
    points = [point.point_id for point in rows_of(document, "points", ExposedPointRow)]
    return pixels_of(points, data()) if points else {}


def lines(run: GnqRun) -> list[str]:
    """Return what removal is, in a run that removes points."""
    return [REMOVAL] if any(arm.method == "remove" for arm in run.arms(run.main_setting)) else []


def draw(run: GnqRun, folder: Path) -> dict[str, str]:
    """Write every figure that the run has something for, and return them as SVG elements by name."""
    setting = run.main_setting
    makers: writing.Makers = {
        "frontier": lambda: frontier(run, setting),
        "bins": lambda: figures.bins(run, setting),
        "correlations": lambda: figures.correlations(run, setting),
        "traces": lambda: figures.traces(run, setting),
        "levels": lambda: sweep_figures.levels(run),
        "bin_settings": lambda: sweep_figures.bin_settings(run),
        "cuts": lambda: sweep_figures.cut_curves(run),
    }
    return writing.draw(makers, folder)


def _effort(run: GnqRun, setting: str) -> str:
    """Return data, model, numbers of models and seconds in one line."""
    value = run.result.value
    sizes = {name: value(setting, f"split.{name}") for name in ("pools", "train_size", "shadows")}
    parts = [f"{value(setting, 'model.name')} on {value(setting, 'data.name')}"]
    if all(sizes.values()):
        pools = "pool" if sizes["pools"] == 1 else "pools"
        parts.append(f"{sizes['pools']} {pools}, each cut into two targets of {sizes['train_size']} points")
        parts.append(f"{sizes['shadows']} shadow models a pool")
    return writing.effort(run.result, parts)


PAGE = RunPage(read_gnq_run, GnqRun.of, fill, images, all_grids, terminal_grids, lines, form=lambda document: GnqResult)
