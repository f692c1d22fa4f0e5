"""The verdict of an Apollo run: can what a method was asked to forget still be recognised?"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from audits.errors import how_many
from audits.statistics.discoveries import judge_among
from orchestrator.apollo.result.controls import attacks_on, controls, direction, judged_rows
from orchestrator.apollo.result.rows import ApolloResult, AttackRow
from orchestrator.apollo.result.void import marked
from orchestrator.apollo.result.words import heading, words
from orchestrator.judgement.controls import DIRECTION
from orchestrator.judgement.rows import FAILED, LEAK, NONE_SEEN, UNTOLD, Finding
from orchestrator.judgement.rule import few_points, seen_above_chance, verdict_of
from orchestrator.judgement.wording import FOUR_IN_FIVE, Wording, advice, disagreement, number_of
from orchestrator.report.chance import unsure
from orchestrator.report.nouns import noun
from orchestrator.report.numbers import percent
from orchestrator.report.result import look_up
from orchestrator.report.words import access_level

FORGOT_TOO_MUCH = (
    "Do not treat this as erasure. If the lists of deleted and never-seen {things} are right, what was deleted shows "
    "by what the model no longer knows: unlearn more gently, or retrain without the deleted {things}, and audit again."
)


def judge(result: ApolloResult, unlike: Collection[str] = ()) -> ApolloResult:
    """Return a result by the rules of all audits: its rows, its controls, and a finding for each method and setting.

    ``unlike``: settings whose shadows are trained unlike their targets (``controls.judged_rows``).
    """
    given = {row.unlearner for row in result.table if row.control_of is None} if result.given else ()
    result = marked(replace(result, table=judged_rows(result.table, result.level, unlike, given)))
    main, names, things = result.main_setting, [each.setting for each in result.settings], noun(result.plan)
    found = tuple(control for name in names for control in controls(result, name))
    accesses = sorted({row.access for row in result.rows(main)} - {"oracle"}, key=access_level)
    size = None if result.given else result.value(main, "split.train_size")
    verdict = verdict_of(
        [each for name in names for each in findings(result, name)],
        found,
        main={main},
        wording=wording(things, given=result.given),
        tested=tested(result, things),
        access=accesses,
        certainty=certainty(result, things),
        too_small=few_points(size, things),
        about=result.about,
    )
    return replace(result, controls=found, verdict=verdict)


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
    return Wording(f"deleted {things} can still be recognised", {**told, **forgot}, words)


def findings(result: ApolloResult, setting: str) -> list[Finding]:
    """Return a finding for each unlearning method of a setting."""
    names = dict.fromkeys(row.unlearner for row in result.rows(setting) if row.control_of is None)
    return [finding(result, setting, name) for name in names]


def finding(result: ApolloResult, setting: str, unlearner: str) -> Finding:
    """Return what is found of one method: the strongest attack of the weakest access that is above chance.

    Without one: the attack that is fixed by name, and what it would have found. Where that one failed, no other stands
    in for it: which attacks came to an end is no choice that was made beforehand. The oracle is no attack.
    """
    own = attacks_on(result, setting, unlearner)
    subject = f"Given model (by {words(unlearner)})" if result.given else heading(unlearner)
    nothing = Finding(setting=setting, subject=subject, level=UNTOLD, why="no attack has a result", chance=0.5)
    nothing = nothing.but(controlled_by=unlearner, attacks=tuple(dict.fromkeys(row.attack for row in own)))
    if not own:
        return nothing
    if above := [row for row in own if row.above_chance]:
        row = min(above, key=lambda row: (access_level(row.access), -float(row.auc)))
        return nothing.but(level=LEAK, why="", attack=row.attack, access=row.access, value=row.auc)
    if differ := [row for row in own if unsure(row, result.level)]:
        row = max(differ, key=lambda row: float(row.auc))
        why = disagreement(result.units, words(row.attack), row.auc)
        return nothing.but(why=why, attack=row.attack, access=row.access, value=row.auc)
    for control in direction(result, setting, unlearner)[:1]:
        if control.state == FAILED:
            row = next(row for row in own if row.attack == control.attack)
            things = noun(result.plan)
            why = f"its deleted {things} stand out the other way round ({words(row.attack)}, {number_of(row.auc)})"
            return nothing.but(why=why, attack=row.attack, access=row.access, value=row.auc)
    oracles = {row.attack for row in result.table if row.access == "oracle"}
    name = judge_among([attack for attack in result.value(setting, "audit.attacks") if attack not in oracles])
    for row in own:
        if row.attack == name:
            seen = seen_from(result, row)
            return nothing.but(level=NONE_SEEN, why="", attack=name, access=row.access, value=row.auc, seen_from=seen)
    return nothing.but(why=f"{words(name)} has no result")


def seen_from(result: ApolloResult, row: AttackRow) -> float | None:
    """Return the smallest AUC that the attack of ``row`` would have found, of all that are tested in its setting."""
    members, others = row.forget / row.targets, row.unseen / row.targets
    grouped, tests = bool(look_up(result.plan, "data.groups")), len(result.rows(row.setting))
    return seen_above_chance(row.auc, members, others, row.targets, result.level, tests, grouped=grouped)


def tested(result: ApolloResult, things: str) -> str:
    """Return what was asked about, in a sentence."""
    rows, plan = result.rows(result.main_setting), result.plan
    row, attacks = rows[0], {each.attack for each in rows}
    methods = {each.unlearner for each in rows if each.control_of is None}
    models = "one given model" if result.given else f"{row.targets} models ({look_up(plan, 'model.name')})"
    count = "No method but controls" if not methods else f"{len(methods)} unlearning methods"
    count = "One unlearning method" if len(methods) == 1 else count
    asked = f"{row.forget} deleted and {row.unseen} never-seen {things}"
    data = look_up(plan, "data.name")
    return f"{count} on {models}, trained on {data}: {asked}, {how_many(len(attacks), 'attack')}"


def certainty(result: ApolloResult, things: str) -> str:
    """Return how sure the verdict is, in a sentence or two."""
    rows = result.rows(result.main_setting)
    over = "points and shadow models of one given model" if result.given else f"{rows[0].targets} target models"
    seeds = "" if result.given else f", {look_up(result.plan, 'split.shadows')} shadow models each, one plan seed"
    return (
        f"{percent(result.level, 0)} intervals over {over}{seeds}. The {len(rows)} tests are corrected together "
        f"(Holm): the chance of any false alarm is at most {percent(1 - result.level, 0)}. For a leak the strongest "
        f"attack with the least access is shown, which overstates a little. {FOUR_IN_FIVE}"
    )
