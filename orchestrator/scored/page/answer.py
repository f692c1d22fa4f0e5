"""The verdict of judged scores: do they tell who was trained on?"""

from __future__ import annotations

from collections.abc import Sequence

from audits.errors import how_many
from orchestrator.judgement.controls import DIRECTION, PROMISED_RATES, backwards
from orchestrator.judgement.rows import FAILED, HELD, LEAK, MISSING, UNTOLD, Control, Finding, Verdict
from orchestrator.judgement.rule import seen_above_chance, verdict_of
from orchestrator.judgement.wording import FOUR_IN_FIVE, Wording, advice, disagreement
from orchestrator.report.chance import level_of
from orchestrator.report.numbers import percent
from orchestrator.scored.rows import ScoreResult, ScoreRow

ADVICE = advice(
    "mia",
    leak="If the training data are personal data, treat the models as such: restrict access, or train with a defence "
    "and judge again.",
    untold="Judge scores of more points and more target models.",
    none_seen="These scores show no leak. That is no proof: other attacks may find one.",
)


def answer(run: ScoreResult) -> Verdict:
    """Return the verdict of a set of scores, one finding for each setting and attack."""
    first = {(row.setting, row.attack): row for row in reversed(run.table)}
    rows = list(reversed(first.values()))
    wrong = [row.attack for row in rows if backwards(float(row.auc), row.auc_p_holm, run.level)]
    text = "Scores come without null models or planted points, so a null result may only mean a weak attack."
    return verdict_of(
        main=[finding(run, row, len(rows)) for row in rows],
        controls=[
            *([Control(name=DIRECTION.told(), of="cells", state=FAILED, text=turned(wrong))] if wrong else []),
            *promises(run),
            Control(name="controls of the audit", of="cells", state=MISSING, text=text),
        ],
        wording=Wording("members can be recognised", ADVICE),
        tested=f"Scores of {rows[0].targets} target models, {rows[0].members} members and {rows[0].non_members} "
        f"non-members, {how_many(len(rows), 'attack')}",
        access=(),
        certainty=f"{run.covers} {percent(run.level, 0)} intervals; the attacks are corrected together (Holm). "
        f"{FOUR_IN_FIVE}",
    )


def promises(run: ScoreResult) -> list[Control]:
    """Say whether decisions that came with the scores keep the rates that they promise; nothing without any."""
    if not any(row.found_fpr_p is not None for row in run.table):
        return []
    name, void = PROMISED_RATES.told(), dict.fromkeys(row.attack for row in run.table if row.void)
    if not void:
        return [Control(name=name, of="cells", state=HELD, text="No attack raises more false alarms than it promises.")]
    text = f"More false alarms than promised by {', '.join(void)}: hit rates are void, AUCs stand."
    return [Control(name=name, of="cells", state=FAILED, text=text)]


def turned(attacks: Sequence[str]) -> str:
    """Return what is wrong with the scores of ``attacks``."""
    return f"Members have lower scores than others by {', '.join(attacks)}: is it --lower-is-member?"


def finding(run: ScoreResult, row: ScoreRow, tests: int) -> Finding:
    """Return what one attack finds, of so many that are tested together."""
    members, others = row.members / row.targets, row.non_members / row.targets
    why, level = "", level_of(row, run.level)
    if level == UNTOLD:
        why = disagreement("targets" if row.targets > 1 else "points", row.attack, row.auc)
    elif backwards(float(row.auc), row.auc_p_holm, run.level):
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
        value=row.auc,
        chance=0.5,
        seen_from=None if level == LEAK or why else seen,
    )
