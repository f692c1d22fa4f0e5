"""The verdict of a membership run: can training points be recognised?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from audits.errors import how_many
from orchestrator.judgement.rows import LEAK, NONE_SEEN, UNTOLD, Finding
from orchestrator.judgement.rule import few_points, seen_above_chance, verdict_of
from orchestrator.judgement.wording import ACCESS, FOUR_IN_FIVE, Wording, advice, disagreement, number_of
from orchestrator.mia.result.controls import controls, judged_rows, place
from orchestrator.mia.result.rows import MiaResult, MiaRow
from orchestrator.mia.result.words import words
from orchestrator.report.chance import level_of
from orchestrator.report.nouns import noun
from orchestrator.report.numbers import percent
from orchestrator.report.result import look_up

LABELS = "labels"


def judge(result: MiaResult, unlike: Collection[str] = ()) -> MiaResult:
    """Return a result by the rules of all audits: its rows, what is void, its controls, and a verdict.

    ``unlike``: settings whose shadows are trained unlike their targets (``controls.judged_rows``).
    """
    result = with_void(replace(result, table=judged_rows(result.table, result.level, unlike)))
    things, main, names = noun(result.plan), result.main_setting, [each.setting for each in result.settings]
    found = tuple(control for name in names for control in controls(result, name))
    verdict = verdict_of(
        [part for name in names for part in findings(result, name)],
        found,
        main={main},
        wording=wording(things),
        tested=tested(result, things),
        access=list(dict.fromkeys(row.access for row in result.rows(main))),
        certainty=certainty(result),
        too_small="" if result.given else few_points(result.value(main, "split.train_size"), things),
        about=result.about,
    )
    return replace(result, controls=found, verdict=verdict)


def with_void(result: MiaResult) -> MiaResult:
    """Return a result in which all that rests on a broken promise is void, as its table says."""
    void = {place(row) for row in result.table if row.void}
    return replace(
        result,
        shadows=tuple(replace(row, void=(row.setting, row.attack) in void) for row in result.shadows),
        discoveries=tuple(replace(row, void=(row.setting, row.attack) in void) for row in result.discoveries),
        exposed=tuple(replace(point, void=(point.setting, result.judge) in void) for point in result.exposed),
    )


def wording(things: str) -> Wording:
    """Return how a membership audit speaks."""
    return Wording(
        f"training {things} can be recognised",
        advice(
            "mia",
            leak=f"If the {things} are personal data, treat the model as such: restrict access, or train with a "
            "defence (less over-fitting, DP-SGD) and audit again.",
            untold="Do not rely on this run. Repeat it with more pools, points or shadow models (split.pools, "
            "split.train_size, split.shadows).",
        ),
        words,
    )


def findings(result: MiaResult, setting: str) -> list[Finding]:
    """Return what the judge finds, and what attacks on labels alone do.

    A judge without a result has found nothing out, whatever other attacks did.
    """
    rows = result.rows(setting)
    of_labels = [row for row in rows if row.access == LABELS]
    judge = next((row for row in rows if row.attack == result.judge), None)
    found = []
    if judge is None:
        why, others = f"{words(result.judge)} has no result", tuple(row.attack for row in rows)
        found.append(Finding(setting=setting, subject="the model", level=UNTOLD, why=why, attacks=others))
    elif judge.access != LABELS:
        found.append(finding(result, judge, [judge], len(rows)))
    if of_labels:
        above = [row for row in of_labels if row.above_chance]
        row = max(above, key=lambda row: float(row.auc)) if above else of_labels[0]
        found.append(finding(result, row, of_labels, len(rows)))
    return found


def finding(result: MiaResult, row: MiaRow, rests_on: list[MiaRow], tests: int) -> Finding:
    """Return what one attack finds, of so many that are tested together."""
    level = level_of(row, result.level)
    found = f"training {noun(result.plan)} can be recognised ({number_of(row.auc)})"
    return Finding(
        setting=row.setting,
        subject=f"from {ACCESS.get(row.access, row.access)}",
        text=found if level == LEAK else "",
        level=level,
        why=disagreement(result.units, words(row.attack), row.auc) if level == UNTOLD else "",
        attack=row.attack,
        access=row.access,
        value=row.auc,
        chance=0.5,
        seen_from=seen_from(result, row, tests) if level == NONE_SEEN else None,
        attacks=tuple(each.attack for each in rests_on),
    )


def seen_from(result: MiaResult, row: MiaRow, tests: int) -> float | None:
    """Return the smallest AUC that the attack of ``row`` would have found, of so many tests.

    The targets of a pool are asked about the same points and count once.
    """
    members, others = row.members / row.targets, row.non_members / row.targets
    grouped = bool(look_up(result.plan, "data.groups"))
    return seen_above_chance(row.auc, members, others, row.pools, result.level, tests, grouped=grouped)


def tested(result: MiaResult, things: str) -> str:
    """Return what was asked about, in a sentence."""
    rows, plan = result.rows(result.main_setting), result.plan
    models = "One given model" if result.given else f"{rows[0].targets} models ({look_up(plan, 'model.name')})"
    asked = f"{rows[0].members} training and {rows[0].non_members} never-seen {things}"
    return f"{models}, trained on {look_up(plan, 'data.name')}: {asked}, {how_many(len(rows), 'attack')}"


def certainty(result: MiaResult) -> str:
    """Return how sure the verdict is."""
    rows = result.rows(result.main_setting)
    given, pools = "points and shadow models of one given model", f"{rows[0].pools} independent pools of points"
    shadows = result.value(result.main_setting, "split.shadows")
    many = f"; the {len(rows)} attacks are corrected together (Holm)" if len(rows) > 1 else ""
    return (
        f"{percent(result.level, 0)} intervals over {given if result.given else pools}, {shadows} shadow models each, "
        f"one plan seed. The verdict rests on {words(result.judge)}, chosen beforehand{many}. {FOUR_IN_FIVE}"
    )
