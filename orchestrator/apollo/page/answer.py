"""The verdict of an Apollo run: can what a method was asked to forget still be recognised?"""

from __future__ import annotations

from audits.errors import how_many
from audits.statistics.discoveries import judge
from orchestrator.apollo.page.glossary import heading, words
from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.result.controls import HELD as SEEN
from orchestrator.apollo.result.controls import IDENTITY, OFF_CHANCE, RETRAIN, not_learnt, turned_methods
from orchestrator.apollo.result.rows import AttackRow
from orchestrator.judgement.controls import DIRECTION, LEARNT, PROMISED_RATES
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
from orchestrator.judgement.wording import FOUR_IN_FIVE, Wording, advice, capital, disagreement, number_of, rounded
from orchestrator.report.nouns import noun
from orchestrator.report.numbers import percent
from orchestrator.report.result import look_up
from orchestrator.report.words import access_level

FORGOT_TOO_MUCH = (
    "Do not treat this as erasure. If the lists of deleted and never-seen {things} are right, what was deleted shows "
    "by what the model no longer knows: unlearn more gently, or retrain without the deleted {things}, and audit again."
)


def answer(run: ApolloRun) -> Verdict:
    """Return the verdict of a run."""
    things = noun(run.result.plan)
    size = None if run.given else run.result.value(run.main_setting, "split.train_size")
    return verdict_of(
        [part for name in run.settings for part in of_setting(run, name)],
        [control for name in run.settings for control in controls(run, name)],
        main={run.main_setting},
        wording=wording(things, given=run.given),
        tested=tested(run, things),
        access=[name for name in run.accesses if name != "oracle"],
        certainty=certainty(run, things),
        too_small=few_points(size, things),
        about=run.result.about,
    )


def wording(things: str, *, given: bool = False) -> Wording:
    """Return how an audit of unlearning speaks; of a ``given`` model there are no further targets."""
    again, more = "with more targets", f"models and more {things} (split.targets, split.candidates)"
    if given:
        again, more = "again", "shadow models (split.shadows)"
    told = advice(
        "apollo",
        leak=f"Do not treat a method that leaks as erasure. Retrain without the deleted {things}, or use a method "
        f"that shows no leak once it has been audited {again}.",
        untold=f"Do not rely on this run. Repeat it with more {more}.",
    )
    forgot = {DIRECTION.term: FORGOT_TOO_MUCH.format(things=things)}
    return Wording(f"deleted {things} can still be recognised", {**told, **forgot})


def of_setting(run: ApolloRun, setting: str) -> list[Finding]:
    """Return a finding for each unlearning method of a setting."""
    rows = run.rows(setting)
    names = dict.fromkeys(row.unlearner for row in rows if row.control_of is None)
    return [finding(run, setting, name, rows) for name in names]


def finding(run: ApolloRun, setting: str, unlearner: str, rows: list[AttackRow]) -> Finding:
    """Return what is found of one method: the strongest attack of the weakest access that is above chance.

    Without one: the attack that is fixed by name, and what it would have found. The oracle is no attack.
    """
    own = [row for row in rows if row.unlearner == unlearner and row.access != "oracle"]
    above = [row for row in own if row.above_chance]
    differ = [row for row in own if run.unsure(row)]
    subject = f"Given model (by {words(unlearner)})" if run.given else heading(unlearner)
    nothing = Finding(setting=setting, subject=subject, level=UNTOLD, why="no attack has a result", chance=0.5)
    nothing = nothing.but(controlled_by=unlearner, attacks=tuple(dict.fromkeys(row.attack for row in own)))
    if above:
        row = min(above, key=lambda row: (access_level(row.access), -float(row.auc)))
        return nothing.but(level=LEAK, why="", attack=row.attack, access=row.access, value=row.auc)
    if not own:
        return nothing
    if differ:
        row = max(differ, key=lambda row: float(row.auc))
        why = disagreement(run.units, words(row.attack), row.auc)
        return nothing.but(why=why, attack=row.attack, access=row.access, value=row.auc)
    if odd := turned_methods(((unlearner, row.attack, row.auc.value, row.auc_p_holm) for row in own), run.level):
        row = next(row for row in own if row.attack == odd[0][1])
        things = noun(run.result.plan)
        why = f"its deleted {things} stand out the other way round ({words(row.attack)}, {number_of(row.auc)})"
        return nothing.but(why=why, attack=row.attack, access=row.access, value=row.auc)
    name = judge([row.attack for row in own])
    row = next(row for row in own if row.attack == name)
    seen = seen_from(run, row, len(rows))
    return nothing.but(level=NONE_SEEN, why="", attack=name, access=row.access, value=row.auc, seen_from=seen)


def seen_from(run: ApolloRun, row: AttackRow, tests: int) -> float | None:
    """Return the smallest AUC that the attack of ``row`` would have found, of so many tests."""
    members, others = row.forget / row.targets, row.unseen / row.targets
    grouped = bool(look_up(run.result.plan, "data.groups"))
    return seen_above_chance(row.auc, members, others, row.targets, run.level, tests, grouped=grouped)


def controls(run: ApolloRun, setting: str) -> list[Control]:
    """Return the controls of a setting: retrained models, untouched models, the models asked, promised rates."""
    rows = [row for row in run.result.table if row.setting == setting]
    return [
        retrained(setting, rows),
        untouched(run, setting, rows),
        *of_model(run, setting, rows),
        promises(setting, rows),
    ]


def of_model(run: ApolloRun, setting: str, table: list[AttackRow]) -> list[Control]:
    """Say whether deleted points stand out the other way round, and whether a given model learnt what it has kept."""
    asked = [row for row in table if row.control_of is None and row.access != "oracle"]
    found = []
    if asked:
        odd = turned_methods(((row.unlearner, row.attack, row.auc.value, row.auc_p_holm) for row in asked), run.level)
        for method, attack, auc in odd:
            text = (
                f"Deleted points are told by being known less well than never-seen ones ({words(method)}, AUC "
                f"{rounded(auc)} by {words(attack)}): the model forgot too much, which discloses them as well, or the "
                "two lists are swapped."
            )
            found.append(DIRECTION.row(NULLS, FAILED, setting, text, subject=method))
        if not odd:
            found.append(DIRECTION.row(NULLS, HELD, setting, "No attack takes deleted points for never-seen ones."))
    if run.given:
        rows = [row for row in run.result.setting_utility if row.setting == setting] or run.result.utility
        why = not_learnt(
            (run.control_of(row.unlearner, setting), row.unlearner, row.retain_accuracy, row.test_accuracy)
            for row in rows
        )
        if why is not None:
            text = f"{capital(why)}." if why else "As it should be, the model fits kept points better than test points."
            found.append(LEARNT.row(NULLS, FAILED if why else HELD, setting, text))
    return found


def retrained(setting: str, table: list[AttackRow]) -> Control:
    """Say whether nothing is found in models that never saw the deleted points."""
    rows = [row for row in table if row.control_of == RETRAIN.term]
    if not rows:
        text = "False alarms of the audit itself would go unnoticed."
        return RETRAIN.row(FINDINGS, MISSING, setting, text)
    off = dict.fromkeys(words(row.attack) for row in rows if row.control == OFF_CHANCE)
    if off:
        text = f"Deleted points are told from others even there, by {', '.join(off)}."
        return RETRAIN.row(FINDINGS, FAILED, setting, text)
    return RETRAIN.row(FINDINGS, HELD, setting, "As it should be, nothing is found there.")


def untouched(run: ApolloRun, setting: str, table: list[AttackRow]) -> Control:
    """Say whether the audit sees points of models of which nothing was deleted: the given one's original if known."""
    rows = [row for row in table if row.control_of == IDENTITY.term and row.access != "oracle"]
    if not rows:
        return IDENTITY.row(NULLS, MISSING, setting, "It is unknown whether a leak would be found.")
    seen = [row for row in rows if row.control == SEEN]
    if not seen:
        text = "No attack recognises a point even there, so the audit would not see a leak."
        if run.original:
            text = (
                "No attack recognises a deleted point even in the given model before unlearning: it was not trained on "
                "the points of target.forget, or it learnt too little of them to be seen. What is not found now says "
                "nothing about unlearning."
            )
        return IDENTITY.row(NULLS, FAILED, setting, text)
    best = max(seen, key=lambda row: float(row.auc))
    where = "in the given model before unlearning" if run.original else "there"
    text = f"As it should be, points are recognised {where} (AUC {rounded(best.auc.value)}, {words(best.attack)})."
    if run.given and not run.original:
        text += (
            " That is a model of the plan’s own: only target.original can show whether the given one had learnt them."
        )
    return IDENTITY.row(NULLS, HELD, setting, text)


def promises(setting: str, table: list[AttackRow]) -> Control:
    """Say whether attacks raise no more false alarms than they promise."""
    void = dict.fromkeys(words(row.attack) for row in table if row.void)
    if void:
        text = f"More false alarms than promised by {', '.join(void)}: hit rates are void, AUCs stand."
        return PROMISED_RATES.row(RATES, FAILED, setting, text)
    return PROMISED_RATES.row(RATES, HELD, setting, "No attack raises more false alarms than it promises.")


def tested(run: ApolloRun, things: str) -> str:
    """Return what was asked about, in a sentence."""
    row = run.rows()[0]
    methods = [name for name in run.unlearners if run.control_of(name) is None]
    plan = run.result.plan
    models = "one given model" if run.given else f"{row.targets} models ({look_up(plan, 'model.name')})"
    count = "No method but controls" if not methods else f"{len(methods)} unlearning methods"
    count = "One unlearning method" if len(methods) == 1 else count
    asked = f"{row.forget} deleted and {row.unseen} never-seen {things}"
    data = look_up(plan, "data.name")
    return f"{count} on {models}, trained on {data}: {asked}, {how_many(len(run.attacks), 'attack')}"


def certainty(run: ApolloRun, things: str) -> str:
    """Return how sure the verdict is, in a sentence or two."""
    rows = run.rows()
    over = "points and shadow models of one given model" if run.given else f"{rows[0].targets} target models"
    seeds = "" if run.given else f", {look_up(run.result.plan, 'split.shadows')} shadow models each, one plan seed"
    return (
        f"{percent(run.level, 0)} intervals over {over}{seeds}. The {len(rows)} tests are corrected together (Holm): "
        f"the chance of any false alarm is at most {percent(1 - run.level, 0)}. For a leak the strongest attack with "
        f"the least access is shown, which overstates a little. {FOUR_IN_FIVE}"
    )
