"""The verdict of judged scores: do they tell who was trained on?"""

from __future__ import annotations

from dataclasses import replace

from audits.errors import how_many
from orchestrator.judgement.controls import backwards
from orchestrator.judgement.rows import LEAK, UNTOLD, Finding
from orchestrator.judgement.rule import seen_above_chance, verdict_of
from orchestrator.judgement.wording import FOUR_IN_FIVE, Wording, advice, disagreement
from orchestrator.report.chance import level_of
from orchestrator.report.numbers import percent
from orchestrator.scored.controls import controls, judged_rows, void_values
from orchestrator.scored.rows import ScoreResult, ScoreRow

UNCONTROLLED = "Scores come without null models or planted points, so a null result may only mean a weak attack."
ADVICE = advice(
    "mia",
    leak="If the training data are personal data, treat the models as such: restrict access, or train with a defence "
    "and judge again.",
    untold="Judge scores of more points and more target models.",
    none_seen="These scores show no leak. That is no proof: other attacks may find one.",
)


def judge(result: ScoreResult) -> ScoreResult:
    """Return a result by the rules of all audits: its rows, its controls, and a finding for each setting and attack."""
    table = judged_rows(result.table, result.level)
    result = replace(result, table=table, predictive_values=void_values(result.predictive_values, table))
    first = {(row.setting, row.attack): row for row in reversed(table)}
    rows = list(reversed(first.values()))
    found = tuple(controls(table, result.level))
    verdict = verdict_of(
        [finding(result, row, len(rows)) for row in rows],
        found,
        main={row.setting for row in rows},
        wording=Wording("members can be recognised", ADVICE),
        tested=f"Scores of {how_many(rows[0].targets, 'target model')}, {rows[0].members} members and "
        f"{rows[0].non_members} non-members, {how_many(len(rows), 'attack')}",
        access=(),
        certainty=f"{result.covers} {percent(result.level, 0)} intervals; the attacks are corrected together (Holm). "
        f"{UNCONTROLLED} {FOUR_IN_FIVE}",
    )
    return replace(result, controls=found, verdict=verdict)


def finding(run: ScoreResult, row: ScoreRow, tests: int) -> Finding:
    """Return what one attack finds, of so many that are tested together."""
    members, others = row.members / row.targets, row.non_members / row.targets
    why, level = "", level_of(row, run.level)
    if level == UNTOLD:
        why = disagreement("targets" if row.targets > 1 else "points", row.attack, row.auc)
    elif backwards(row.auc.value, row.auc_p_holm, run.level):
        why = "members have lower scores than others, so the scores may stand the wrong way round"
    elif level != LEAK and row.auc.bounded and row.auc.errors == (0.0, 0.0):
        why = "its scores are all alike, and would have shown nothing"
    seen = seen_above_chance(row.auc, members, others, row.targets, run.level, tests)
    return Finding(
        setting=row.setting,
        subject=row.attack if len({each.setting for each in run.table}) < 2 else f"{row.attack} ({row.setting})",
        level=UNTOLD if why else level,
        why=why,
        attack=row.attack,
        controlled_by=row.attack,
        value=row.auc,
        chance=0.5,
        seen_from=None if level == LEAK or why else seen,
    )
