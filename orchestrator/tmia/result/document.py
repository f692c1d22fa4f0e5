"""The content of result.json of a TMIA run (schema ``orch.result/2``; see docs/reference/result.md)."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from audits.tmia.design import SEEDED
from orchestrator.engine.given import POINTS
from orchestrator.engine.run.attempts import failed_attacks, failure_warnings
from orchestrator.engine.run.models import METRICS
from orchestrator.judgement.wording import warnings as control_warnings
from orchestrator.report.result import head_of
from orchestrator.report.rows import read_rows
from orchestrator.tmia.result.given import notes_of, of_given_model
from orchestrator.tmia.result.given_rows import AlikeRow, OwnModelCell, cell_form
from orchestrator.tmia.result.judging import judge
from orchestrator.tmia.result.rows import (
    GAP,
    FitRow,
    OverfittedRow,
    RecognisedPoint,
    ReconstructionRow,
    SelectionRow,
    TmiaCell,
    TmiaResult,
    TmiaSetting,
)
from orchestrator.tmia.stages.one_target import CONTROL
from orchestrator.tmia.stages.scoring import CELLS

if TYPE_CHECKING:
    from orchestrator.engine.kind import Finished
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store

R = TypeVar("R")


def summed_up(finished: Finished) -> dict[str, Any]:
    """Return the content of result.json: cells, fit, selections, reconstruction and everything needed to run again."""
    settings, store = finished.settings, finished.store
    plan = finished.design.plan
    found = {setting.name: details(setting, store) for setting in settings}

    def rows(form: type[R], field: str) -> tuple[R, ...]:
        return read_rows(form, (row for place, part in found.items() for row in placed(part[field], place)), field)

    fits = [row for setting in settings for row in fit_rows(setting, store)]
    notes = dict.fromkeys([*plan.notes, *(line for setting in settings for line in setting.plan.notes)])
    about_teachers = [setting.name for setting in settings if setting.plan.audit.mode == "II"]
    said = {place: parts["warnings"] for place, parts in found.items()}
    known = {line for lines in said.values() for line in lines}
    known |= {f"variant {place}: {line}" for place, lines in said.items() for line in lines}  # as the plan says it
    warnings = [*(line for line in plan.warnings if line not in known), *setting_warnings(said)]
    warnings += failure_warnings(failed_attacks(settings, store), len(settings))
    if plan.target is None:
        warnings += fit_warnings(fits, about_teachers)
    result = TmiaResult(
        **head_of(finished),
        settings=tuple(
            TmiaSetting(setting=each.name, overrides=plain(each.overrides), mode=each.plan.audit.mode)
            for each in settings
        ),
        table=rows(cell_form(plan.resolved()), "cells"),
        fit=tuple(fits),
        selections=rows(SelectionRow, "selections"),
        reconstruction=rows(ReconstructionRow, "reconstruction"),
        exposed=rows(RecognisedPoint, "exposed"),
        warnings=tuple(dict.fromkeys(warnings)),
        notes=tuple(notes),
        level=plan.audit.level,
        overfitted=rows(OverfittedRow, "overfitted"),
    )
    if plan.target is not None:
        told = [line for setting in settings for line in notes_of(setting, store)]
        result = of_given_model(result, rows(OwnModelCell, "controls"), rows(AlikeRow, "alike"), told)
    result = judge(result)
    warned = dict.fromkeys([*result.warnings, *control_warnings(result.controls)])
    return replace(result, warnings=tuple(warned)).document()


def placed(rows: Sequence[Mapping[str, Any]], setting: str) -> list[dict[str, Any]]:
    """Return the rows of a setting with its name."""
    return [{"setting": setting, **row} for row in rows]


def setting_warnings(lines: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the warnings of all settings; those that not all settings share say which ones they are about."""
    found: dict[str, list[str]] = {}
    for name, own in lines.items():
        for line in own:
            found.setdefault(line, []).append(name)
    return [
        line
        if len(names) == len(lines)
        else f"{'setting' if len(names) == 1 else 'settings'} {', '.join(names)}: {line}"
        for line, names in found.items()
    ]


def plain(overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a setting changes, without the note that it has no variants of its own."""
    return {name: value for name, value in overrides.items() if name != "variants"}


def details(setting: Setting, store: Store) -> dict[str, Any]:
    """Return the stored tables of a setting beside its scores: cells, selections, reconstruction, exposed points."""
    (job,) = setting.of("score")
    found: dict[str, Any] = json.loads(store.get("score", job.key).read(CELLS))
    return found


def cells_of(setting: Setting, store: Store) -> tuple[TmiaCell, ...]:
    """Return the cells of a setting whose jobs are done."""
    form = cell_form(setting.plan.resolved())
    return read_rows(form, placed(details(setting, store)["cells"], setting.name), "cells")


GROUP_OF: dict[str, str] = {word: group for group, word in SEEDED.items()}
"""The word for a group in names of models → the group."""


def fit_rows(setting: Setting, store: Store) -> list[FitRow]:
    """Return one row for each side × group of models: mean accuracies, their gap, and a flag where it is too large."""
    asked_side = "other" if setting.plan.audit.mode == "II" else "own"
    given = [job for job in setting.of("given") if job.member != POINTS]
    measured: dict[tuple[str, str], list[dict[str, float]]] = {}
    for job in given:
        measured["asked", "target"] = [json.loads(store.get("given", job.key).read(METRICS))]
    for job in setting.of("train"):
        side, word, _ = job.member.split("-")
        place, group = "asked" if side == asked_side else "teacher", GROUP_OF[word]
        group = CONTROL if given and group == "target" else group
        measured.setdefault((place, group), []).append(json.loads(store.get("train", job.key).read(METRICS)))
    rows = []
    for (side, group), models in measured.items():
        train = float(np.mean([model["train_accuracy"] for model in models]))
        tests = [model["test_accuracy"] for model in models if "test_accuracy" in model]
        test = float(np.mean(tests)) if tests else None
        gap = None if test is None else train - test
        rows.append(
            FitRow(
                setting=setting.name,
                side=side,
                group=group,
                models=len(models),
                train_accuracy=train,
                test_accuracy=test,
                gap=gap,
                flag="overfitted" if gap is not None and gap > GAP else "",
            )
        )
    return rows


def fit_warnings(rows: Sequence[FitRow], about_teachers: Collection[str] = ()) -> list[str]:
    """Return a warning for each setting whose targets, or in mode II whose targets' teachers, are over-fitted.

    In mode II the training set in question is the teacher's.
    """
    names = {"asked": "targets", "teacher": "teachers of the targets"}
    return [
        f"setting {row.setting}: {names[row.side]} are over-fitted (train {row.train_accuracy:.3f}, test "
        f"{row.test_accuracy:.3f}); what is found is no result about normally fitted models"
        for row in rows
        if row.group == "target" and row.flag and (row.side == "asked" or row.setting in about_teachers)
    ]
