"""The verdict of a GNQ audit of a given model: do training points show, by the simplest attack and by exposure?"""

from __future__ import annotations

import math
from dataclasses import replace

from audits.statistics.power import detectable_shift
from orchestrator.gnq.given.controls import LOSS, learnt
from orchestrator.gnq.given.rows import GivenResult, GroupRow, SeparationRow
from orchestrator.judgement.rows import LEAK, NONE_SEEN, UNTOLD, Finding
from orchestrator.judgement.rule import verdict_of
from orchestrator.judgement.wording import FOUR_IN_FIVE, Wording, advice
from orchestrator.report.chance import beyond
from orchestrator.report.nouns import noun
from orchestrator.report.numbers import percent
from orchestrator.report.result import look_up, of_setting

MEMBERS, CONTROLS = "members", "controls"


def judge(result: GivenResult) -> GivenResult:
    """Return a result with its controls, and the verdict on its findings."""
    things, names = noun(result.plan), [each.setting for each in result.settings]
    controls = tuple(learnt(name, result.separation) for name in names)
    verdict = verdict_of(
        [part for name in names for part in findings(result, name, things)],
        controls,
        main={result.main_setting},
        wording=wording(things),
        tested=tested(result, result.main_setting, things),
        access=["white_box"],
        certainty=certainty(result),
        about=result.about,
    )
    return replace(result, controls=controls, verdict=verdict)


def wording(things: str) -> Wording:
    """Return how an audit of a given model by gradient uniqueness speaks."""
    further = (
        "Audit it with attacks as well (orch audit mia with the same section target): exposure alone is no attack."
    )
    return Wording(
        f"training {things} can be told from others by their loss",
        advice(
            "gnq",
            leak=f"If the {things} are personal data, treat the model as such. {further}",
            untold=further,
            none_seen=f"This was the weakest possible attack. {further}",
        ),
    )


def findings(run: GivenResult, setting: str, things: str) -> list[Finding]:
    """Return how far the loss tells training points from controls, and which of them stand out."""
    rows = {row.group: row for row in of_setting(run.table, setting)}
    loss = next((row for row in of_setting(run.separation, setting) if row.score == LOSS), None)
    found = [by_loss(run, setting, loss)] if loss else []
    return [
        *found,
        *(
            [exposed(setting, rows[MEMBERS], rows.get(CONTROLS), things)]
            if rows[MEMBERS].exposed_points or not found
            else []
        ),
    ]


def by_loss(run: GivenResult, setting: str, row: SeparationRow) -> Finding:
    """Return what the simplest membership attack finds."""
    above = beyond(row.auc)
    error = max(row.auc.errors) if row.auc.bounded else None
    return Finding(
        setting=setting,
        subject="Loss of its training points",
        level=LEAK if above else NONE_SEEN,
        attack=LOSS,
        access="white_box",
        value=row.auc,
        chance=0.5,
        seen_from=None if above or error is None else 0.5 + detectable_shift(error, math.inf, run.level),
    )


def exposed(setting: str, row: GroupRow, other: GroupRow | None, things: str) -> Finding:
    """Return how many training points stand out; what that gives away, no attack has said."""
    some = f"{row.exposed_points} of {row.points} ({percent(row.exposed)}) stand out by their gradients"
    beside = f", of points that it was not trained on {percent(other.exposed)}" if other else ""
    why = f"{some}{beside}, but no attack has made use of that" if row.exposed_points else "no attack was made"
    return Finding(setting=setting, subject=f"Outstanding {things}", level=UNTOLD, why=why)


def tested(run: GivenResult, setting: str, things: str) -> str:
    """Return what was measured, in a sentence."""
    row = next(row for row in of_setting(run.table, setting) if row.group == MEMBERS)
    return (
        f"One given model ({look_up(run.plan, 'model.name')}), {row.points} of its training {things} "
        f"({look_up(run.plan, 'data.name')}), by gradients; nothing was trained"
    )


def certainty(run: GivenResult) -> str:
    """Return how sure the verdict is."""
    return (
        f"{percent(run.level, 0)} intervals over these points of one model. They say nothing about other models of the "
        f"same training. {FOUR_IN_FIVE}"
    )
