"""The verdict of a TMIA run: can training points be recognised, from the model itself or from its student?"""

from __future__ import annotations

from audits.errors import how_many
from orchestrator.judgement.controls import FIT, LEARNT, OWN_MODELS
from orchestrator.judgement.estimate import Estimate
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
    Level,
    Verdict,
)
from orchestrator.judgement.rule import few_points, verdict_of
from orchestrator.judgement.wording import ACCESS, FOUR_IN_FIVE, Wording, advice, capital, number_of, rounded
from orchestrator.report.nouns import noun
from orchestrator.report.numbers import percent
from orchestrator.report.result import look_up
from orchestrator.tmia.page.glossary import words
from orchestrator.tmia.page.reading import TmiaRun
from orchestrator.tmia.page.verdict import detectable
from orchestrator.tmia.result.controls import ALIKE, NON_MEMBERS, NULL_MODELS, OVERFITTED, fair, sight
from orchestrator.tmia.result.given import compared, own_power, teachers_in_question, unlearnt, unlike_fits
from orchestrator.tmia.result.given_rows import GivenResult
from orchestrator.tmia.result.rows import TmiaCell

WHOSE = {"I": "Teacher", "II": "Student, asked about its teacher’s {things}", "III": "Student"}
"""Mode → whose training points are asked about, and of whom."""
KNOWN = {True: " (true classes known)", False: ""}
"""Whether an attacker knows the candidates' classes → the words for it."""


def known(run: TmiaRun, setting: str) -> bool:
    """Return whether the attacker of a setting knows the candidates' classes (``audit.star``)."""
    return bool(run.result.value(setting, "audit.star") == "true")


def answer(run: TmiaRun) -> Verdict:
    """Return the verdict of a run: of all settings that it shows in full."""
    things = noun(run.result.plan)
    given = isinstance(run.result, GivenResult)
    names = [*run.shown, *(name for name in run.settings if name not in run.shown)]
    return verdict_of(
        [part for name in names for part in findings(run, name, things)],
        [control for name in names for control in controls(run, name)],
        main=run.shown,
        wording=wording(things, given=given),
        tested=tested(run, things),
        access=list(dict.fromkeys(row.access for row in run.result.table)),
        certainty=certainty(run),
        too_small="" if given else few_points(look_up(run.result.plan, "split.train_size"), things),
        about=run.result.about if len(run.shown) == 1 else "",
    )


def wording(things: str, *, given: bool) -> Wording:
    """Return how a membership audit speaks; of a ``given`` model there are no further targets."""
    more = "candidates or reference models (split.candidates, split.reference_models)"
    if not given:
        more = "targets, candidates or reference models (split.targets, split.candidates, split.reference_models)"
    return Wording(
        f"training {things} can be recognised",
        advice(
            "tmia",
            leak=f"If the {things} are personal data, treat the models that leak as such: restrict access, or train "
            "with a defence (less over-fitting, DP-SGD) and audit again.",
            untold=f"This is no all-clear. Repeat the audit with more {more}.",
        ),
    )


def findings(run: TmiaRun, setting: str, things: str) -> list[Finding]:
    """Return what the attacks of the verdict find in a setting: from labels, then from posteriors."""
    found = []
    for attack in run.judges:
        row = run.cell(setting, run.main_selection, attack)
        if row is not None:
            found.append(finding(run, row, things))
    return found


def finding(run: TmiaRun, row: TmiaCell, things: str) -> Finding:
    """Return what one cell says; a void one says nothing."""
    whose = WHOSE.get(row.mode, f"Attack {row.mode}").format(things=things)
    if len(run.shown) == 1:
        whose = "The model" if row.mode == "I" else whose
    alike = [name for name in run.shown if run.mode(name) == row.mode]
    if len(alike) > 1:  # such as those whose attacker knows the candidates' classes, and those whose does not
        whose = f"{whose}{KNOWN[known(run, row.setting)]}"
        if sum(known(run, name) == known(run, row.setting) for name in alike) > 1:
            whose = f"{whose} ({row.setting})"
    level: Level = UNTOLD if row.void else LEAK if row.above_chance else NONE_SEEN
    return Finding(
        setting=row.setting,
        subject=f"{whose}, from {ACCESS.get(row.access, row.access)}",
        level=level,
        text="" if level != LEAK else f"training {things} can be recognised ({told(row)})",
        why=f"the promised false-alarm rate of {words(row.attack)} is broken" if row.void else "",
        attack=row.attack,
        access=row.access,
        metric="precision",
        value=Estimate() if row.void else row.precision,
        chance=row.chance,
        seen_from=detectable(row, run.level) if level == NONE_SEEN else None,
    )


def told(row: TmiaCell) -> str:
    """Return the precision of a cell with its interval, beside that of guessing."""
    return f"{number_of(row.precision, 'precision')}, guessing {rounded(row.chance)}"


def controls(run: TmiaRun, setting: str) -> list[Control]:
    """Return the controls of a setting: null models and over-fitted models, of a given model those of ``of_given``.

    Cells that break their promise are void by themselves, so that the others stand.
    """
    rows = fair(run.rows(setting))
    if not rows:
        found = [NULL_MODELS.row(RATES, MISSING, setting, "It is unknown whether false alarms are as promised.")]
    else:
        off = dict.fromkeys(words(row.attack) for row in rows if row.null_fpr_off)
        beta = percent(rows[0].beta)
        text = f"They are called members no more often than promised ({beta})."
        if off:
            of_verdict = [row for row in rows if row.attack in run.judges and row.selection == run.main_selection]
            own = any(row.null_fpr_off for row in of_verdict)
            rests = "and the verdict rests on some" if own else "but the verdict does not rest on them"
            by = ", ".join(off)
            text = f"Called members more often than promised ({beta}) by {by}: these results are void, {rests}."
        found = [NULL_MODELS.row(RATES, FAILED if off else HELD, setting, text)]
    return [*found, *of_given(run, setting)]


def of_given(run: TmiaRun, setting: str) -> list[Control]:
    """Return the controls beside a given model: its known non-members, own models, whether members are like others.

    Without one that attacks see: over-fitted models.
    """
    if not isinstance(run.result, GivenResult):
        return [seen(run, setting)]
    off = dict.fromkeys(words(row.attack) for row in run.result.table if row.setting == setting and row.fpr_off)
    text = "They are called members no more often than promised."
    text = f"Called members too often by {', '.join(off)}." if off else text
    found = [NON_MEMBERS.row(RATES, FAILED if off else HELD, setting, text)]
    found.append(power(run, run.result, setting))
    fits = [row for row in run.result.fit if row.setting == setting]
    if compared(fits):
        unlike = unlike_fits(fits, teachers_in_question(run.result))
        text = "Models trained by the plan fit as the given model does."
        text = f"{capital('; '.join(unlike))}." if unlike else text
        found.append(FIT.row(NULLS, FAILED if unlike else HELD, setting, text))
    table = [
        (row.selection, (row.attack, row.auc.value, row.auc.low, row.auc.high))
        for row in run.result.table
        if row.setting == setting
    ]
    why = unlearnt(table, [cell for cell in run.result.controls if cell.setting == setting], run.judges)
    if why is not None:
        text = f"{capital(why)}." if why else "As far as intervals tell, target.members names its training points."
        found.append(LEARNT.row(NULLS, FAILED if why else HELD, setting, text))
    for row in run.result.alike:
        if row.setting == setting:
            text = "Models that saw neither see no difference."
            if row.differ:
                text = "Models that saw neither can tell them apart, so what is found may not be membership."
            found.append(ALIKE.row(FINDINGS, FAILED if row.differ else HELD, setting, text))
    return found


def power(run: TmiaRun, result: GivenResult, setting: str) -> Control:
    """Say whether attacks of the verdict find the members of the plan's own models, beside a given one."""
    best = own_power([cell for cell in result.controls if cell.setting == setting], run.judges)
    if best is None:
        return OWN_MODELS.row(NULLS, MISSING, setting, "It is unknown whether a leak would be found.")
    reached = f"{number_of(best[1])}, {words(best[0])}"
    if best[1].above(0.5):
        return OWN_MODELS.row(NULLS, HELD, setting, f"As they should be, they are recognised ({reached}).")
    text = f"They are not recognised ({reached}), so the audit would not see a leak."
    return OWN_MODELS.row(NULLS, FAILED, setting, text)


def seen(run: TmiaRun, setting: str) -> Control:
    """Say whether attacks of the verdict find the members of over-fitted models."""
    best = sight([row for row in run.result.overfitted if row.setting == setting], run.judges)
    if best is None:
        return OVERFITTED.row(NULLS, MISSING, setting, "It is unknown whether a leak would be found.")
    reached = f"{number_of(best[1])}, {words(best[0])}"
    if best[1].above(0.5):
        text = f"As they should be, their members are recognised ({reached})."
        return OVERFITTED.row(NULLS, HELD, setting, text)
    text = f"Their members are not recognised ({reached}), so the audit would not see a leak."
    return OVERFITTED.row(NULLS, FAILED, setting, text)


def tested(run: TmiaRun, things: str) -> str:
    """Return what was asked about, in a sentence."""
    plan = run.result.plan
    row = next((row for row in run.result.table if row.setting == run.shown[0]), run.result.table[0])
    models = "one given model" if isinstance(run.result, GivenResult) else f"{row.targets} target models"
    many = f" in {len(run.shown)} settings ({', '.join(run.shown)})" if len(run.shown) > 1 else ""
    candidates = look_up(plan, "split.candidates")
    asked = f" about {candidates} candidate {things}" if candidates else ""
    where = f"{look_up(plan, 'model.name')} on {look_up(plan, 'data.name')}"
    return f"{capital(models)} ({where}), asked{asked}{many}, {how_many(len(run.attacks), 'attack')}"


def certainty(run: TmiaRun) -> str:
    """Return how sure the verdict is, and whether what is found may be plain over-fitting."""
    plan = run.result.plan
    given = isinstance(run.result, GivenResult)
    over = "candidates and reference models" if given else "targets, candidates and reference models"
    fit = any(row.flag for row in run.result.fit if row.group == "target" and row.setting in run.shown)
    flag = " The models are over-fitted, which simpler attacks would find as well." * fit
    return (
        f"{percent(run.level, 0)} intervals over {over} ({look_up(plan, 'split.reference_models')} reference models, "
        "one plan seed), not corrected for their number. The verdict’s attacks and selection were fixed beforehand. "
        f"{FOUR_IN_FIVE}{flag}"
    )
