"""Intervals of an audit of a given model: over points and shadows, in the place of those over targets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from audits.statistics.chance import ABOVE, Standing, standing
from audits.statistics.judged import rows_by
from audits.statistics.one_target import Interval, area_p, one_target_auc, one_target_rate, one_target_rate_p
from audits.statistics.summary import Cell, Row, cells
from orchestrator.apollo.result.controls import RETRAIN, control_in
from orchestrator.apollo.score_table import POOLED, REPETITION
from orchestrator.apollo.stages.scoring import WITHOUT
from orchestrator.engine.given import POINTS
from orchestrator.engine.given_files import STAGE
from orchestrator.engine.run.models import METRICS
from orchestrator.engine.store.payloads import unpack_arrays

if TYPE_CHECKING:
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store

Arrays = Mapping[str, NDArray[Any]]
MISFIT = 0.5
"""Accuracy at its own points below which a given model does not seem to belong to the data as they are."""
Place = tuple[str, str, int]
"""Setting, unlearner, target."""


def of_one_target(
    rows: Sequence[Row], scores: Mapping[str, NDArray[Any]], settings: Sequence[Setting], store: Store, level: float
) -> list[Row]:
    """Return rows of ``summary.summarise`` with intervals and p-values of rates over points and shadows.

    Where a setting joins several audits of the model (``pooled``), each with shadows and candidates of its own, the
    ends are means of theirs: as if their errors were one and the same, for the model is.
    """
    kept, found = left_out(settings, store), {place(cell): cell for cell in cells(scores)}
    told = [row | over_points_and_shadows(found[place(row)], row["promised_fpr"], kept, level) for row in rows]
    told = [row | {"above_chance": stands(row, level) == ABOVE} for row in told]
    return [row | judged_with_shadows(row, level) if control_in(row) == RETRAIN.term else row for row in told]


def stands(row: Row, level: float) -> Standing:
    """Return where a row stands to chance by its interval over points and shadows."""
    return standing(row["auc"], row["auc_low"], row["auc_p_holm"], level)


def judged_with_shadows(row: Row, level: float) -> Row:
    """Return the p-value of a row of the control ``retrain``: no less than its interval, over shadows too, has it.

    Permutations of points hold the shadows still. Of the control alone, which voids every finding where it fails: the
    p-value of other rows is that of the points, beside which their interval decides.
    """
    return {"auc_p": area_p(row["auc_p"], (row["auc"], row["auc_low"], row["auc_high"]), level)}


def told_of_target(settings: Sequence[Setting], store: Store) -> tuple[list[str], list[str]]:
    """Return notes and warnings about the given models: what reading them changed, and which misfit their data."""
    notes, warnings = list[str](), list[str]()
    for job in {job.key: job for setting in settings for job in setting.of(STAGE) if job.member != POINTS}.values():
        metrics = json.loads(store.get(STAGE, job.key).read(METRICS))
        notes += metrics["notes"]
        if (right := metrics["train_accuracy"]) < MISFIT:
            warnings.append(
                f"target.{job.member} gets {right:.0%} of the points right that it was trained on and kept; are the "
                "inputs scaled as in its training, and are the classes in the same order?"
            )
    return notes, warnings


def place(of: Cell | Row) -> tuple[str, str, str]:
    """Return setting, unlearner and attack of a cell or a row."""
    if isinstance(of, Cell):
        return of.setting, of.unlearner, of.attack
    return of["setting"], of["unlearner"], of["attack"]


def left_out(settings: Sequence[Setting], store: Store) -> dict[Place, Arrays]:
    """Return what attacks say without groups of their shadows, as stage score kept it."""
    found: dict[Place, Arrays] = {}
    for number, setting in enumerate(settings):
        for job in setting.of("score"):
            arrays = unpack_arrays(store.get("score", job.key).read(WITHOUT))
            found[setting.name, job.label, 0] = found[POOLED, job.label, REPETITION * number] = arrays
    return found


def over_points_and_shadows(cell: Cell, fpr: float, kept: Mapping[Place, Arrays], level: float) -> Row:
    """Return the fields of one row that one model cannot have over targets."""
    name, member = f"decision_{fpr:g}", cell.member
    areas, rates, p_values = [], [], []
    for own in rows_by(cell.target):
        arrays = kept[cell.setting, cell.unlearner, int(cell.target[own][0])]
        again = without(arrays, cell, own, "score")
        areas.append(one_target_auc(cell.scores[own], member[own], again, level))
        calls, fewer = cell.columns[name][own].astype(np.float64), without(arrays, cell, own, name)
        inside, outside = ((calls[side], [each[side] for each in fewer]) for side in (member[own], ~member[own]))
        rates.append((one_target_rate(*inside, level), one_target_rate(*outside, level)))
        p_values.append([one_target_rate_p(outside[0], fpr, outside[1], level, below=side) for side in (False, True)])
    several = 2.0 if len(p_values) > 1 else 1.0  # twice the mean of p-values is one, whatever they have in common
    above, below = (min(1.0, several * float(np.mean(each))) for each in zip(*p_values, strict=True))
    return {
        **ends("auc", areas),
        **ends("tpr", [inside for inside, _ in rates]),
        **ends("found_fpr", [outside for _, outside in rates]),
        "found_fpr_p": above,
        "found_fpr_below_p": below,
    }


def without(arrays: Arrays, cell: Cell, rows: NDArray[np.int64], what: str) -> list[NDArray[np.float64]]:
    """Return ``what`` the attack of a cell says about its ``rows`` without each group of shadows; [] without groups."""
    name = f"{cell.attack}.{what}"
    if name not in arrays:
        return []
    order = np.argsort(arrays["point_id"])
    places = order[np.searchsorted(arrays["point_id"], cell.columns["point_id"][rows], sorter=order)]
    return list(arrays[name][:, places].astype(np.float64))


def ends(name: str, intervals: Iterable[Interval]) -> Row:
    """Return the mean ends of intervals as the fields of a row."""
    _, low, high = np.mean(list(intervals), axis=0)
    return {f"{name}_low": float(low), f"{name}_high": float(high)}
