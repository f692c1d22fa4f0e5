"""What a result says beside its cells where one given model was audited: controls, doubts, and its scope."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

from audits.statistics.one_target import SAYS
from audits.tmia.design import SEEDED
from orchestrator.engine.given import POINTS
from orchestrator.engine.run.given import NOTES
from orchestrator.engine.run.models import METRICS
from orchestrator.judgement.controls import Told, not_learnt
from orchestrator.judgement.estimate import Estimate
from orchestrator.tmia.result.given_rows import AlikeRow, ControlCell, GivenResult
from orchestrator.tmia.result.rows import GAP, FitRow, TmiaCell, TmiaResult

if TYPE_CHECKING:
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store

MOST_NAMED = 6
UNLIKE = 0.1
"""Difference of accuracies from which models of the plan's recipe are no control of the given one."""
BESIDE = ("null", SEEDED["null"], "control")
"""Groups of models of the plan's recipe that a given model is compared with."""


def of_given_model(
    result: TmiaResult, controls: tuple[ControlCell, ...], alike: tuple[AlikeRow, ...], notes: Sequence[str]
) -> GivenResult:
    """Return the result of a given model: with its controls, and what a reader must know about it."""
    found = {each.name: getattr(result, each.name) for each in fields(TmiaResult)}
    warnings = [
        *own_rate_warnings(result.table),
        *alike_warnings(alike),
        *unlike_fits(result.fit, teachers_in_question(result), GAP),
    ]
    warnings += points_alone(result.table)
    found["warnings"] = tuple(dict.fromkeys([*result.warnings, *warnings]))
    found["notes"] = tuple(dict.fromkeys([*result.notes, *notes, SAYS]))
    return GivenResult(**found, controls=controls, alike=alike)


def notes_of(setting: Setting, store: Store) -> list[str]:
    """Return what was changed in reading the given model."""
    jobs = [job for job in setting.of("given") if job.member != POINTS]
    return [line for job in jobs for line in json.loads(store.get("given", job.key).read(METRICS)).get(NOTES, [])]


def own_rate_warnings(cells: Sequence[TmiaCell]) -> list[str]:
    """Return a warning for each setting in which the model's own non-members are called more often than promised."""
    lines = []
    for setting in dict.fromkeys(cell.setting for cell in cells):
        own = [cell for cell in cells if cell.setting == setting and cell.fpr_p is not None]
        broken = [cell for cell in own if cell.fpr_off]
        if broken:
            named = [f"{cell.attack} on {cell.selection} {cell.fpr.value:.1%}" for cell in broken[:MOST_NAMED]]
            more = f" and {len(broken) - MOST_NAMED} more" if len(broken) > MOST_NAMED else ""
            lines.append(
                f"control failed: setting {setting}: known non-members of the target are called members more often "
                f"than {broken[0].beta:.1%} in {len(broken)} of {len(own)} cells, also after Holm's correction "
                f"({', '.join(named)}{more}): reference models are not like it, or it is surer than most models of its "
                "kind; precision and coverage are void there and must not be quoted"
            )
    return lines


def alike_warnings(rows: Sequence[AlikeRow]) -> list[str]:
    """Return a warning for each setting whose members differ from non-members for models that saw neither."""
    return [
        f"setting {row.setting}: reference models, which saw none of the candidates, tell members from non-members "
        f"(AUC {row.auc.value:.3f}): the two lists are not of one distribution, so that what attacks find may be that "
        "and not the training; give non-members that were set aside at random"
        for row in rows
        if row.differ
    ]


def teachers_in_question(result: TmiaResult) -> list[str]:
    """Return the settings in which the given model is a student whose own training points are not known."""
    return of_students((entry.setting, entry.mode) for entry in result.settings)


def of_students(settings: Iterable[tuple[str, str]]) -> list[str]:
    """Return of (setting, mode) those settings whose members are not the model's own training points."""
    return [setting for setting, mode in settings if mode == "II"]


def compared(rows: Sequence[FitRow]) -> bool:
    """Say whether models of the plan's recipe stand beside the given one."""
    return any(row.group in BESIDE for row in rows)


def unlike_fits(rows: Sequence[FitRow], untold: Collection[str] = (), by: float = UNLIKE) -> list[str]:
    """Return a line for each setting in which accuracies of models of the plan's recipe are ``by`` off the given one's.

    A list that does not name the training points looks like a model that memorised none of them.

    ``untold``: settings in which the accuracy on training points is not known.
    """
    lines = []
    for own in (row for row in rows if row.group == "target"):
        beside = [row for row in rows if (row.setting, row.side) == (own.setting, own.side) and row.group in BESIDE]
        for row in beside:
            pairs = [("train", own.train_accuracy, row.train_accuracy), ("test", own.test_accuracy, row.test_accuracy)]
            told = [
                f"{what} {mine:.3f}, theirs {theirs:.3f}"
                for what, mine, theirs in pairs[own.setting in untold :]
                if mine is not None and theirs is not None and abs(mine - theirs) > by
            ]
            if told:
                lines.append(
                    f"setting {own.setting}: models of the plan's recipe fit otherwise than the target (accuracy: "
                    f"{'; '.join(told)}): either target.members does not name its training points, or the recipe is "
                    "not its own; a null result says nothing, and promised rates depend on it"
                )
                break
    return lines


def own_power(cells: Sequence[ControlCell], attacks: Collection[str]) -> tuple[str, Estimate] | None:
    """Return which of ``attacks`` finds the members of the plan's own models best, and its AUC; None without a result.

    On the selection with most candidates. The number and the ends are means over the models, as if their errors were
    one and the same: all are judged by the same reference models, at the same points. Best is the highest low end.
    """
    found: list[tuple[float, str, Estimate]] = []
    for attack in attacks:
        own = [cell for cell in cells if cell.attack == attack and cell.auc.bounded]
        most = max((cell.candidates for cell in own), default=0)
        first = next((cell.selection for cell in own if cell.candidates == most), "")
        areas = [cell.auc for cell in own if cell.selection == first]
        if areas:
            low, high = (sum(each.ends[side] for each in areas) / len(areas) for side in (0, 1))
            found.append((low, attack, Estimate(sum(map(float, areas)) / len(areas), low, high)))
    return max(found, key=lambda each: each[0])[1:] if found else None


def unlearnt(
    table: Iterable[tuple[str, Told]],
    own: Sequence[ControlCell],
    attacks: Collection[str],
) -> str | None:
    """Return why a given model cannot have learnt its members as own models did (``judgement.controls.not_learnt``).

    ``table``: selection, and what an attack sees there, of one setting. The attack is the one that sees most in own
    models, on the selection on which it is told there.
    """
    best = own_power(own, attacks)
    if best is None:
        return None
    attack, area = best
    cells = [cell for cell in own if cell.attack == attack and cell.auc.bounded]
    selection = max(cells, key=lambda cell: cell.candidates).selection
    given = [told for place, told in table if (place, told[0]) == (selection, attack)]
    return not_learnt(attack, given, [(attack, float(area), area.low, area.high)])


def points_alone(cells: Sequence[TmiaCell]) -> list[str]:
    """Return a line on the attacks whose intervals are over points alone."""
    names = dict.fromkeys(cell.attack for cell in cells if getattr(cell, "resampled", "") == "points")
    if not names:
        return []
    return [f"intervals of {', '.join(names)} are over points alone: without some of its reference models it fails"]
