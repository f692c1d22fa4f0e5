"""The scope of one given model, and the tables of models trained by the plan beside it."""

from __future__ import annotations

from audits.statistics.one_target import SAYS
from orchestrator.report.grid import Grid, grid, left
from orchestrator.report.numbers import percent
from orchestrator.report.result import of_setting
from orchestrator.report.sentence import Sentence
from orchestrator.tmia.page.numbers import rate_entry
from orchestrator.tmia.result.given_rows import GivenResult
from orchestrator.tmia.result.run import TmiaRun
from orchestrator.tmia.result.words import words


def named(run: TmiaRun, setting: str) -> str:
    """Return the setting's name for a heading, nothing where the run has only one."""
    return f" ({setting})" if len(run.settings) > 1 else ""


def scope(run: TmiaRun) -> list[Sentence]:
    """Say that intervals are about one model alone; nothing about a run with targets of its own."""
    return [Sentence("plain", "Scope", SAYS)] if isinstance(run.result, GivenResult) else []


def own_model_grids(run: TmiaRun) -> list[Grid]:
    """Return what the attacks find in each model of the plan's own, a table a setting."""
    if not isinstance(run.result, GivenResult):
        return []
    columns = [left("selection", merge=True), left("attack", merge=True), "control", "|Q|"]
    columns += [f"precision [{percent(run.level, 0)}]", "coverage", "FPR", "AUC"]
    found = []
    for setting in run.shown:
        body = [
            [
                words(row.selection),
                words(row.attack),
                row.control + 1,
                row.candidates,
                rate_entry(row.precision),
                rate_entry(row.coverage),
                rate_entry(row.fpr),
                rate_entry(row.auc),
            ]
            for row in of_setting(run.result.own_models, setting)
        ]
        if body:
            title = f"{setting}: models trained by the plan, judged like the target"
            found.append(grid(f"own-models-{setting}", title, columns, body))
    return found
