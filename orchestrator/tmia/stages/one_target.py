"""Stage score with a given model: its cells and those of the controls, and whether members and others are alike."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.seeds import Purpose
from audits.signals.loss import losses
from audits.statistics.one_target import one_target_auc
from audits.tmia.again import judge_without, kept_in_turn
from audits.tmia.attacks import ATTACKS
from audits.tmia.cells import Tested
from audits.tmia.given_cells import given_cells
from orchestrator.engine.run.attempts import Attempts
from orchestrator.tmia.shared_pool import pool_sets
from orchestrator.tmia.stages.context import Context

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from audits.tmia.answers import Answers, Posteriors
    from audits.tmia.attacks import JudgeSettings, Ruling

CONTROL = "control"
"""The group, in the table of scores, of models of the plan's own recipe that are judged beside the given one."""
ALIKE_LEVEL = 0.99
"""Confidence level at which members and non-members are said to differ: this is asked once a setting."""


def of_one_target(
    context: Context,
    found: Answers,
    settings: JudgeSettings,
    columns: Mapping[str, NDArray[Any]],
    rulings: Mapping[str, Ruling],
) -> dict[str, Any]:
    """Return the parts of the details that a given model has in the place of, and beside, those of many targets."""
    audit = context.design.plan.audit
    again, failed = judged_again(context, found, settings, list(rulings))
    tested = Tested(
        audit.beta, pool_sets(context.design.plan), audit.level, audit.bootstrap, context.seed(Purpose.CELLS)
    )
    given, controls = given_cells(columns, rulings, again, audit.selectors, tested)
    return {
        "cells": [{"mode": audit.mode, **cell} for cell in given],
        "controls": controls,
        "alike": [alike(found.known_posteriors(), context.design.sets.membership[0])],
        "once": failed,
    }


def judged_again(
    context: Context, found: Answers, settings: JudgeSettings, attacks: list[str]
) -> tuple[dict[str, list[Ruling]], list[str]]:
    """Return what each attack says without each group of reference models, and the attacks that cannot do without.

    These have no rulings: their intervals are over points alone.
    """
    kept = kept_in_turn(len(found.known_labels().predicted["reference"]))
    again: dict[str, list[Ruling]] = {}
    for name in attacks:
        attempts, seed = Attempts(), context.seed(Purpose.JUDGE, name)
        tried = [attempts.of(name, partial(judge_without, ATTACKS[name], found, settings, seed, each)) for each in kept]
        whole = [ruling for ruling in tried if ruling is not None]
        again[name] = whole if len(whole) == len(tried) else []
    return again, [name for name in attacks if not again[name]]


def alike(seen: Posteriors, member: NDArray[np.bool_]) -> dict[str, Any]:
    """Return how well reference models, which saw none of them, tell the given model's members from its non-members.

    AUC of minus their mean loss: ½ where both are of one distribution. Elsewhere attacks may tell the two apart by
    what they are, whatever the given model holds of them.
    """
    loss = losses(seen.posterior["reference"], seen.star["reference"])
    without = [-loss[kept].mean(0) for kept in kept_in_turn(len(loss))]
    value, low, high = one_target_auc(-loss.mean(0), member, without, ALIKE_LEVEL)
    return {"auc": value, "auc_low": low, "auc_high": high, "differ": not low <= 0.5 <= high}


def apart(columns: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the columns of the table of scores, controls as a group of their own, counted from 0."""
    controls = (columns["group"] == "target") & (columns["model"] > 0)
    group = np.where(controls, CONTROL, columns["group"]).astype(object)
    return {**columns, "group": group, "model": columns["model"] - controls.astype(columns["model"].dtype)}
