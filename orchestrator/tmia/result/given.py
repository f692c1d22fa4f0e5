"""The part of a result about one given model beside its cells: controls, doubts, and its scope."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from audits.statistics.one_target import SAYS
from audits.tmia.design import SEEDED
from orchestrator.engine.given import POINTS
from orchestrator.engine.run.given import NOTES
from orchestrator.engine.run.models import METRICS
from orchestrator.judgement.estimate import Estimate
from orchestrator.report.result import of_setting
from orchestrator.tmia.result.given_rows import AlikeRow, GivenResult, OwnModelCell
from orchestrator.tmia.result.rows import GAP, FitRow, TmiaCell, TmiaResult

if TYPE_CHECKING:
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store

UNLIKE = 0.1
"""Difference of accuracies from which models of the plan's recipe are no control of the given one."""
BESIDE = ("null", SEEDED["null"], "control")
"""Groups of models of the plan's recipe that a given model is compared with."""


def of_given_model(
    result: TmiaResult, own_models: tuple[OwnModelCell, ...], alike: tuple[AlikeRow, ...], notes: Sequence[str]
) -> GivenResult:
    """Return the result of a given model: with models of the plan's own, and what a reader must know about it."""
    found = {each.name: getattr(result, each.name) for each in fields(TmiaResult)}
    warnings = [*unlike_warnings(result), *points_alone(result.table)]
    found["warnings"] = tuple(dict.fromkeys([*result.warnings, *warnings]))
    found["notes"] = tuple(dict.fromkeys([*result.notes, *notes, SAYS]))
    return GivenResult(**found, own_models=own_models, alike=alike)


def notes_of(setting: Setting, store: Store) -> list[str]:
    """Return what was changed in reading the given model."""
    jobs = [job for job in setting.of("given") if job.member != POINTS]
    return [line for job in jobs for line in json.loads(store.get("given", job.key).read(METRICS)).get(NOTES, [])]


def unlike_warnings(result: TmiaResult) -> list[str]:
    """Return a warning for each setting in which accuracies of models of the plan's recipe are off by more than GAP."""
    return [
        f"setting {entry.setting}: models of the plan's recipe fit otherwise than the target ({told}); promised rates "
        "depend on it"
        for entry in result.settings
        if (told := unlike_fit(result, entry.setting, GAP))
    ]


def compared(rows: Sequence[FitRow]) -> bool:
    """Say whether models of the plan's recipe stand beside the given one."""
    return any(row.group in BESIDE for row in rows)


def unlike_fit(result: TmiaResult, setting: str, by: float = UNLIKE) -> str:
    """Return which accuracies of models of the plan's recipe are more than ``by`` off the given one's; "" for none.

    In mode II the given model is a student, whose accuracy on its own training points is not known.
    """
    rows = of_setting(result.fit, setting)
    student = any(entry.mode == "II" for entry in result.settings if entry.setting == setting)
    for own in (row for row in rows if row.group == "target"):
        for row in (row for row in rows if row.side == own.side and row.group in BESIDE):
            pairs = [("train", own.train_accuracy, row.train_accuracy), ("test", own.test_accuracy, row.test_accuracy)]
            told = [
                f"{what} {mine:.3f}, theirs {theirs:.3f}"
                for what, mine, theirs in pairs[student:]
                if mine is not None and theirs is not None and abs(mine - theirs) > by
            ]
            if told:
                return f"accuracy: {'; '.join(told)}"
    return ""


def own_areas(cells: Iterable[OwnModelCell]) -> dict[str, tuple[str, Estimate]]:
    """Return how well each attack finds the members of the plan's own models: attack → selection and AUC there.

    On the selection with most candidates. The number and the ends are means over the models, as if their errors were
    one and the same: all are judged by the same reference models, at the same points.
    """
    by_attack: dict[str, list[OwnModelCell]] = {}
    for cell in cells:
        if cell.auc.bounded:
            by_attack.setdefault(cell.attack, []).append(cell)
    found = {}
    for attack, own in by_attack.items():
        selection = max(own, key=lambda cell: cell.candidates).selection
        areas = [cell.auc for cell in own if cell.selection == selection]
        low, high = (sum(each.ends[side] for each in areas) / len(areas) for side in (0, 1))
        found[attack] = selection, Estimate(sum(map(float, areas)) / len(areas), low, high)
    return found


def points_alone(cells: Sequence[TmiaCell]) -> list[str]:
    """Return a line on the attacks whose intervals are over points alone."""
    names = dict.fromkeys(cell.attack for cell in cells if getattr(cell, "resampled", "") == "points")
    if not names:
        return []
    return [f"intervals of {', '.join(names)} are over points alone: without some of its reference models it fails"]
