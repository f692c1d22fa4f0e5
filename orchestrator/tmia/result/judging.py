"""The verdict of a TMIA run: can training points be recognised, from the model itself or from its student?"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeVar

from audits.errors import how_many
from audits.statistics.power import detectable_shift
from audits.tmia.attacks import ATTACKS
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.rows import LEAK, NONE_SEEN, UNTOLD, Finding, Level
from orchestrator.judgement.rule import few_points, verdict_of
from orchestrator.judgement.wording import ACCESS, FOUR_IN_FIVE, Wording, advice, capital, number_of, rounded
from orchestrator.report.nouns import noun
from orchestrator.report.numbers import percent
from orchestrator.report.result import look_up
from orchestrator.tmia.result.controls import controls, judged_cells, judges_in
from orchestrator.tmia.result.given_rows import GivenResult
from orchestrator.tmia.result.rows import TmiaCell, TmiaResult
from orchestrator.tmia.result.run import TmiaRun
from orchestrator.tmia.result.words import words

R = TypeVar("R", bound=TmiaResult)

WHOSE = {"I": "Teacher", "II": "Student, asked about its teacher’s {things}", "III": "Student"}
"""Mode → whose training points are asked about, and of whom."""
KNOWN = {True: " (true classes known)", False: ""}
"""Whether an attacker knows the candidates' classes → the words for it."""


def known(run: TmiaRun, setting: str) -> bool:
    """Return whether the attacker of a setting knows the candidates' classes (``audit.star``)."""
    return bool(run.result.value(setting, "audit.star") == "true")


def judge(result: R) -> R:
    """Return a result with what its cells are by the controls, these, and the verdict on the settings shown in full."""
    result = replace(result, table=judged_cells(result.table, result.level))
    run, found = TmiaRun(result), tuple(controls(result))
    things, given = noun(result.plan), isinstance(result, GivenResult)
    names = [*run.shown, *(name for name in run.settings if name not in run.shown)]
    verdict = verdict_of(
        [part for name in names for part in findings(run, name, things)],
        found,
        main=run.shown,
        wording=wording(things, given=given),
        tested=tested(run, things),
        access=list(dict.fromkeys(row.access for row in result.table)),
        certainty=certainty(run),
        too_small="" if given else few_points(look_up(result.plan, "split.train_size"), things),
        about=result.about if len(run.shown) == 1 else "",
    )
    return replace(result, controls=found, verdict=verdict)


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
        words,
    )


def findings(run: TmiaRun, setting: str, things: str) -> list[Finding]:
    """Return what the attacks of the verdict find in a setting: from labels, then from posteriors.

    None takes the place of one that failed.
    """
    found, there = [], {row.attack for row in run.rows(setting)}
    for attack in judges_in(run.result, setting):
        row = run.cell(setting, run.main_selection, attack)
        if row is not None:
            found.append(finding(run, row, things))
        elif attack not in there:
            access, why = ATTACKS[attack].access, f"{words(attack)} has no result"
            subject = subject_of(run, setting, access, things)
            found.append(Finding(setting=setting, subject=subject, level=UNTOLD, why=why, access=access))
    return found


def subject_of(run: TmiaRun, setting: str, access: str, things: str) -> str:
    """Return whose training points a finding is about, and what an attacker sees."""
    mode = run.mode(setting)
    whose = WHOSE.get(mode, f"Attack {mode}").format(things=things)
    if len(run.shown) == 1:
        whose = "The model" if mode == "I" else whose
    alike = [name for name in run.shown if run.mode(name) == mode]
    if len(alike) > 1:  # such as those whose attacker knows the candidates' classes, and those whose does not
        whose = f"{whose}{KNOWN[known(run, setting)]}"
        if sum(known(run, name) == known(run, setting) for name in alike) > 1:
            whose = f"{whose} ({setting})"
    return f"{whose}, from {ACCESS.get(access, access)}"


def finding(run: TmiaRun, row: TmiaCell, things: str) -> Finding:
    """Return what one cell says; a void one says nothing."""
    level: Level = UNTOLD if row.void else LEAK if row.above_chance else NONE_SEEN
    return Finding(
        setting=row.setting,
        subject=subject_of(run, row.setting, row.access, things),
        level=level,
        text="" if level != LEAK else f"training {things} can be recognised ({precision_in_words(row)})",
        why=f"the promised false-alarm rate of {words(row.attack)} is broken" if row.void else "",
        attack=row.attack,
        access=row.access,
        metric="precision",
        value=Estimate() if row.void else row.precision,
        chance=row.chance,
        seen_from=detectable(row, run.level) if level == NONE_SEEN else None,
    )


def detectable(row: TmiaCell, level: float) -> float | None:
    """Return the lowest precision that an interval as wide as this cell's would have told from chance; or None.

    Four times in five, and by the wider side of the interval: near 0 and 1 the other one is cut short.
    """
    if row.chance is None or not row.precision.known or not row.precision.bounded:
        return None
    return row.chance + detectable_shift(max(row.precision.errors), math.inf, level)


def precision_in_words(row: TmiaCell) -> str:
    """Return the precision of a cell with its interval, beside that of guessing."""
    return f"{number_of(row.precision, 'precision')}, guessing {rounded(row.chance)}"


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
