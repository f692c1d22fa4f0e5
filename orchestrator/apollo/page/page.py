"""The page of an Apollo run: figures and one HTML file, and its tables for documents and terminals."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.apollo.page import figures, heat, matrices, privacy, sweeps
from orchestrator.apollo.page.attacks import counts, main_grid
from orchestrator.apollo.page.budget import budget_curves
from orchestrator.apollo.page.by_setting import setting_grids
from orchestrator.apollo.page.exposure import exposure_grid, shown_images
from orchestrator.apollo.page.forget_requests import foretold, request_words
from orchestrator.apollo.page.front import trade_figure, trade_grid
from orchestrator.apollo.page.glossary import GLOSSARY, OF_ONE_MODEL
from orchestrator.apollo.page.paper_rule import paper_rule_figure, tau_curves
from orchestrator.apollo.page.radii import REFERENCES, figure_name, method_radii
from orchestrator.apollo.page.reading import ApolloRun, read_apollo_run
from orchestrator.apollo.page.swept import SHADOWS
from orchestrator.apollo.page.tables import (
    all_grids,
    closing_lines,
    discovery_grid,
    found_points_grid,
    gain_grid,
    paper_rule_grid,
    radius_grid,
    terminal_grids,
    three_way_grid,
    utility_grid,
)
from orchestrator.apollo.page.verdict import verdict
from orchestrator.apollo.result.rows import ApolloResult, ExposureList
from orchestrator.apollo.result.words import words
from orchestrator.apollo.split import Split
from orchestrator.report import writing
from orchestrator.report.controls import controls_grid
from orchestrator.report.numbers import percent
from orchestrator.report.page import RunPage
from orchestrator.report.pictures import Images
from orchestrator.report.result import look_up
from orchestrator.report.rows import read_row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from audits.data.dataset import Dataset


def fill(run: ApolloRun, out: Path, images: Images) -> Path:
    """Write figures and page of a run under ``out``; ``images`` are shown beside exposed points."""
    svgs = draw(run, out / "figures")
    swept = [name.removeprefix("sweep_") for name in svgs if name.startswith("sweep_")]
    found_points = found_points_grid(run) if len(run.settings) > 1 else None
    return writing.write_page(
        out,
        "orchestrator.apollo.page",
        run.result,
        svgs,
        answer=run.result.verdict,
        all_controls=controls_grid(run.result.controls, words),
        named=words,
        verdict=verdict(run),
        audited=_audited(run),
        effort=_effort(run),
        counts=counts(run),
        level=percent(run.result.level, 0),
        attacks=main_grid(run),
        gains=gain_grid(run),
        utility=utility_grid(run),
        trade=trade_grid(run),
        curves=[(f"sweep_{attack}", words(attack)) for attack in swept],
        by_setting=[*setting_grids(run), *([found_points] if found_points and found_points.lines else [])],
        exposed=exposure_grid(run, images),
        exposed_by=words(run.result.exposed.attack) if run.result.exposed else "",
        discoveries=discovery_grid(run),
        three_way=three_way_grid(run),
        foretold=foretold(run),
        requests=request_words(run),
        paper_rule=paper_rule_grid(run),
        radii=radius_grid(run),
        radius_figures=[
            (figure_name(row), words(row.unlearner), REFERENCES[row.reference]) for row in run.result.radii
        ],
        glossary=GLOSSARY | (OF_ONE_MODEL if run.result.given else {}),
        given=run.result.given,
        over="points" if run.result.given else "targets",
        words=words,
    )


def images(document: Mapping[str, Any], data: Callable[[], Dataset]) -> Images:
    """Return the pictures of the exposed points that the page lists, by point id."""
    exposed = document.get("exposed")
    found = read_row(ExposureList, exposed, "exposed") if exposed else None
    return shown_images(found, data()) if found and found.points else {}


def draw(run: ApolloRun, folder: Path) -> dict[str, str]:
    """Write every figure that the run has something for, and return them as SVG elements by name."""
    result = run.result
    makers: dict[str, Callable[[], Figure | None]] = {
        "auc": lambda: figures.forest(run),
        "roc": lambda: figures.roc_curves(run, logarithmic=False),
        "roc_log": lambda: figures.roc_curves(run, logarithmic=True),
        "privacy_utility": lambda: privacy.privacy_utility(run),
        "trade": lambda: trade_figure(run),
        "setting_utility": lambda: privacy.setting_utility(run),
        "transfer": lambda: matrices.transfer_matrix(run),
        "three_way": lambda: matrices.confusions([row for row in result.three_way if row.setting == run.main_setting]),
        "budget": lambda: budget_curves(result.budget),
        "paper_rule": lambda: paper_rule_figure(result.paper_rule),
        "tau_curves": lambda: tau_curves(result.paper_rule),
        "radius_heat_map": lambda: heat.heat_maps(result.heatmap, run.unlearners),
    }
    for attack in sweeps.swept_attacks(run):
        makers[f"sweep_{attack}"] = lambda attack=attack: sweeps.sweep_curves(run, attack)  # type: ignore[misc]  # a default binds the loop's value
    for row in result.radii:
        makers[figure_name(row)] = lambda row=row: method_radii(row.candidates)  # type: ignore[misc]  # likewise
    return writing.draw(makers, folder)


def _audited(run: ApolloRun) -> str:
    """Return model, data, unlearning methods and what is forgotten in one line."""
    plan = run.result.plan
    methods = ", ".join(words(name) for name in run.unlearners)
    by = (
        f"given model {look_up(plan, 'target.weights')}, judged by shadows unlearned by"
        if run.result.given
        else "unlearned by"
    )
    parts = [f"{look_up(plan, 'model.name')} on {look_up(plan, 'data.name')}", f"{by} {methods}"]
    if shadows := look_up(plan, "shadow_model.name"):
        parts.append(f"attacked with shadows of {shadows}")
    split = {name: look_up(plan, f"split.{name}") for name in ("forget", "train_size")}
    if all(split.values()) and not run.result.given:
        parts.append(f"{Split.model_validate_json(json.dumps(split)).forget_words()} forgotten")
    return "; ".join(parts) + "."


def _effort(run: ApolloRun) -> str:
    """Return numbers of models and seconds in one line."""
    shadows = look_up(run.result.plan, SHADOWS) or look_up(run.result.plan, "split.shadows")
    targets = "one given model" if run.result.given else f"{run.rows()[0].targets} target models"
    parts = [targets, f"{shadows} shadow models per set" if shadows else ""]
    return writing.effort(run.result, parts)


PAGE = RunPage(
    read_apollo_run, ApolloRun.of, fill, images, all_grids, terminal_grids, closing_lines,
    form=lambda document: ApolloResult,
)  # fmt: skip
