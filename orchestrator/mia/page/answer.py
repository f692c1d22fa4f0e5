"""The verdict of a membership run: can training points be recognised?"""

from __future__ import annotations

from collections.abc import Iterable

from audits.errors import how_many
from orchestrator.judgement.controls import DIRECTION, FIT, LEARNT, OWN_MODELS, PROMISED_RATES, Told, not_learnt, turned
from orchestrator.judgement.rows import (
    FAILED,
    FINDINGS,
    HELD,
    LEAK,
    MISSING,
    NONE_SEEN,
    NULLS,
    RATES,
    UNTOLD,
    Control,
    Finding,
    Verdict,
)
from orchestrator.judgement.rule import few_points, seen_above_chance, verdict_of
from orchestrator.judgement.wording import (
    ACCESS,
    FOUR_IN_FIVE,
    Wording,
    advice,
    capital,
    disagreement,
    number_of,
    rounded,
)
from orchestrator.mia.page.glossary import words
from orchestrator.mia.page.reading import MiaRun
from orchestrator.mia.result.controls import BLIND, CANARIES
from orchestrator.mia.result.given import unlike_fits
from orchestrator.mia.result.rows import MiaRow, OwnRow
from orchestrator.report.chance import level_of
from orchestrator.report.nouns import noun
from orchestrator.report.numbers import percent
from orchestrator.report.result import look_up, of_setting

LABELS = "labels"


def answer(run: MiaRun) -> Verdict:
    """Return the verdict of a run."""
    things, setting = noun(run.result.plan), run.main_setting
    return verdict_of(
        [part for name in run.settings for part in findings(run, name)],
        [control for name in run.settings for control in controls(run, name)],
        main={setting},
        wording=wording(things),
        tested=tested(run, things),
        access=list(dict.fromkeys(row.access for row in run.rows())),
        certainty=certainty(run),
        too_small="" if run.given else few_points(run.result.value(setting, "split.train_size"), things),
        about=run.result.about,
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
    )


def findings(run: MiaRun, setting: str) -> list[Finding]:
    """Return what the judge finds, and what attacks on labels alone do."""
    rows = run.rows(setting)
    of_labels = [row for row in rows if row.access == LABELS]
    judge = run.row(run.judge, setting)
    found = []
    if judge is None:
        why = f"{words(run.judge)} has no result"
        found.append(Finding(setting=setting, subject="the model", level=UNTOLD, why=why))
    elif judge.access != LABELS or not of_labels:
        found.append(finding(run, judge, len(rows)))
    if of_labels:
        above = [row for row in of_labels if row.above_chance]
        row = max(above, key=lambda row: float(row.auc)) if above else of_labels[0]
        found.append(finding(run, row, len(rows)))
    return found


def finding(run: MiaRun, row: MiaRow, tests: int) -> Finding:
    """Return what one attack finds, of so many that are tested together."""
    things = noun(run.result.plan)
    level = level_of(row, run.level)
    return Finding(
        setting=row.setting,
        subject=f"from {ACCESS.get(row.access, row.access)}",
        text=f"training {things} can be recognised ({number_of(row.auc)})" if level == LEAK else "",
        level=level,
        why=disagreement(run.units, words(row.attack), row.auc) if level == UNTOLD else "",
        attack=row.attack,
        access=row.access,
        value=row.auc,
        chance=0.5,
        seen_from=seen_from(run, row, tests) if level == NONE_SEEN else None,
    )


def seen_from(run: MiaRun, row: MiaRow, tests: int) -> float | None:
    """Return the smallest AUC that the attack of ``row`` would have found, of so many tests.

    The targets of a pool are asked about the same points and count once.
    """
    members, others = row.members / row.targets, row.non_members / row.targets
    grouped = bool(look_up(run.result.plan, "data.groups"))
    return seen_above_chance(row.auc, members, others, row.pools, run.level, tests, grouped=grouped)


def controls(run: MiaRun, setting: str) -> list[Control]:
    """Return the controls of a setting: one that a leak would be found, and that nothing else is taken for one."""
    found = [power(run, setting), promises(run, setting)]
    return [*of_given(run, setting), *found] if run.given else found


def promises(run: MiaRun, setting: str) -> Control:
    """Say whether attacks raise no more false alarms than they promise, on non-members and on null models."""
    void = dict.fromkeys(words(row.attack) for row in of_setting(run.result.table, setting) if row.void)
    if void:
        text = f"More false alarms than promised by {', '.join(void)}: hit rates are void, AUCs stand."
        return PROMISED_RATES.row(RATES, FAILED, setting, text)
    return PROMISED_RATES.row(RATES, HELD, setting, "No attack raises more false alarms than it promises.")


def power(run: MiaRun, setting: str) -> Control:
    """Say whether what the model must have memorised is found: points with a wrong label, or own models' members."""
    given = run.given
    name = OWN_MODELS if given else CANARIES
    rows = list(of_setting(run.result.own, setting)) if given else list(of_setting(run.result.canaries, setting))
    if not rows:
        return name.row(NULLS, MISSING, setting, "It is unknown whether a leak would be found.")
    row = next((each for each in rows if each.attack == run.judge), rows[0])
    reached = f"AUC {rounded(row.auc.value)}, {words(row.attack)}"
    if row.auc.above(0.5):
        return name.row(NULLS, HELD, setting, f"As they should be, they are recognised ({reached}).")
    return name.row(NULLS, FAILED, setting, f"They are not recognised ({reached}), so the audit would not see a leak.")


def of_given(run: MiaRun, setting: str) -> list[Control]:
    """Return the controls beside a given model: members are like others, stand out the right way, own models fit."""
    found = []
    for row in of_setting(run.result.blind, setting):
        text = "Without the model, members look like others."
        if row.differ:
            text = "Members differ from others even without the model, so what is found may not be membership."
        found.append(BLIND.row(FINDINGS, FAILED if row.differ else HELD, setting, text))
    odd = turned_by(run, setting)
    text = "No attack takes members for others."
    if odd:
        by = f"{words(odd[0])}, AUC {rounded(odd[1])}"
        text = f"Members stand out the other way round ({by}): are the two lists swapped?"
    found.append(DIRECTION.row(NULLS, FAILED if odd else HELD, setting, text))
    why = not_learnt(run.judge, told(run.result.table, setting), told(run.result.own, setting))
    if why is not None:
        text = f"{capital(why)}." if why else "As far as intervals tell, target.members names its training points."
        found.append(LEARNT.row(NULLS, FAILED if why else HELD, setting, text))
    unlike = unlike_fits(of_setting(run.result.fit, setting))
    if unlike:
        text = capital(unlike[0]) + "."
        found.append(FIT.row(NULLS, FAILED, setting, text))
    elif of_setting(run.result.own, setting):
        text = "Models trained by the plan fit as the given model does."
        found.append(FIT.row(NULLS, HELD, setting, text))
    return found


def told(rows: Iterable[MiaRow | OwnRow], setting: str) -> list[Told]:
    """Return what attacks see of members in a setting."""
    return [(row.attack, row.auc.value, row.auc.low, row.auc.high) for row in of_setting(rows, setting)]


def turned_by(run: MiaRun, setting: str) -> tuple[str, float] | None:
    """Return the attack, and its AUC, by which members stand out the other way round; None where they do not."""
    rows = of_setting(run.result.table, setting)
    return turned(((row.attack, row.auc.value, row.auc_p_holm) for row in rows), run.level)


def tested(run: MiaRun, things: str) -> str:
    """Return what was asked about, in a sentence."""
    row = run.rows()[0]
    plan = run.result.plan
    models = "One given model" if run.given else f"{row.targets} models ({look_up(plan, 'model.name')})"
    asked = f"{row.members} training and {row.non_members} never-seen {things}"
    return f"{models}, trained on {look_up(plan, 'data.name')}: {asked}, {how_many(len(run.attacks), 'attack')}"


def certainty(run: MiaRun) -> str:
    """Return how sure the verdict is."""
    row = run.rows()[0]
    over = "points and shadow models of one given model" if run.given else f"{row.pools} independent pools of points"
    shadows = run.result.value(run.main_setting, "split.shadows")
    many = f"; the {len(run.attacks)} attacks are corrected together (Holm)" if len(run.attacks) > 1 else ""
    return (
        f"{percent(run.level, 0)} intervals over {over}, {shadows} shadow models each, one plan seed. The verdict "
        f"rests on {words(run.judge)}, chosen beforehand{many}. {FOUR_IN_FIVE}"
    )
