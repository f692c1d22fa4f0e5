"""The verdict of a GNQ run: can training points be recognised in what is published, and does a defence help?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from audits.errors import how_many
from audits.statistics.power import detectable_shift
from orchestrator.gnq.plan import NONE
from orchestrator.gnq.result.controls import controls, decided, judged_cells
from orchestrator.gnq.result.paired import PairedRow
from orchestrator.gnq.result.rows import ArmRow, GnqResult
from orchestrator.gnq.result.words import arm_words, words
from orchestrator.judgement.rows import LEAK, NONE_SEEN, UNTOLD, Finding
from orchestrator.judgement.rule import few_points, verdict_of
from orchestrator.judgement.wording import FOUR_IN_FIVE, Wording, advice, capital, number_of
from orchestrator.report.nouns import noun
from orchestrator.report.numbers import percent
from orchestrator.report.result import of_setting
from orchestrator.report.words import access_level

CONTROLS = {"random": "at random", "loss_log": "by loss"}
"""Rankings by which the same is done as a control, removal or noise → how their points are chosen."""
TWIN, LIKENESS = "twin", "ssim_image"
"""What the verdict compares model inversion with, and by which measure: fixed by name."""
OTHER, RECOVERED = "other", "ssim"
"""The same of gradient inversion."""


def judge(result: GnqResult) -> GnqResult:
    """Return a result by the rules of all audits: its rows, its controls, and a finding for each arm and setting."""
    result = replace(result, table=judged_cells(result.table, result.level), arms=decided(result.arms))
    things, main, names = noun(result.plan), result.main_setting, [each.setting for each in result.settings]
    found = tuple(controls(result))
    verdict = verdict_of(
        [part for name in names for part in findings(result, name, things)],
        found,
        main={main},
        wording=wording(things),
        tested=tested(result, main, things),
        access=sorted(dict.fromkeys(row.access for row in of_setting(result.table, main)), key=access_level),
        certainty=certainty(result, main),
        too_small=few_points(result.value(main, "split.train_size"), things),
        about=result.about,
    )
    return replace(result, controls=found, verdict=verdict)


def wording(things: str) -> Wording:
    """Return how an audit of disclosure and defences speaks."""
    return Wording(
        f"training {things} can be recognised",
        advice(
            "gnq",
            leak=f"If the {things} are personal data, treat what leaks as such. A defence helps only if it differs "
            "clearly from no defence (table below) and its accuracy is still useful. Removing exposed points does not "
            "protect the others.",
            untold="Do not rely on this run. Repeat it with more pools, points or shadow models (split.pools, "
            "split.train_size, split.shadows).",
        ),
        words,
    )


def findings(result: GnqResult, setting: str, things: str) -> list[Finding]:
    """Return what attacks find in each arm that is no control, and what can be reconstructed."""
    arms = [arm for arm in of_setting(result.arms, setting) if arm.ranking not in CONTROLS]
    return [*(of_arm(result, setting, arm) for arm in arms), *reconstructed(result, setting, things)]


def of_arm(result: GnqResult, setting: str, arm: ArmRow) -> Finding:
    """Return what the strongest attack on all contributors finds in one arm."""
    text = arm_words(arm)
    subject = "The model without a defence" if arm.method == NONE else capital(text)
    best = arm.headline
    if best is None:
        why = "training diverged" if arm.diverged else "no attack has a result"
        return Finding(setting=setting, subject=subject, level=UNTOLD, why=why, chance=0.5, controlled_by=arm.arm)
    silent = not best.above_chance and best.auc.bounded
    return Finding(
        setting=setting,
        subject=subject,
        level=LEAK if best.above_chance else NONE_SEEN,
        attack=best.attack,
        access=next((row.access for row in result.table if row.attack == best.attack), None),
        value=best.auc,
        chance=0.5,
        seen_from=0.5 + shift(result, setting, max(best.auc.errors)) if silent else None,
        controlled_by=arm.arm,
    )


def shift(result: GnqResult, setting: str, error: float) -> float:
    """Return the smallest distance from chance that an interval over the pools would have shown."""
    return detectable_shift(error, max(1, pools(result, setting) - 1), result.level)


def pools(result: GnqResult, setting: str) -> int:
    """Return over how many pools intervals are."""
    return max((row.pools for row in of_setting(result.table, setting)), default=1)


def reconstructed(result: GnqResult, setting: str, things: str) -> list[Finding]:
    """Return whether inversion shows training points better than models, or gradients, that know nothing of them."""
    model = [
        row
        for row in of_setting(result.inversion_gains, setting)
        if (row.arm, row.against, row.measure) == (NONE, TWIN, LIKENESS)
    ]
    steps = [
        row
        for row in of_setting(result.gradient_inversion_gains, setting)
        if (row.measure, row.against) == (RECOVERED, OTHER)
    ]
    last = [row for row in steps if row.step == max(each.step for each in steps)]
    found = []
    for subject, what, rows in (
        ("Model inversion", f"training {things} can be reconstructed in part", model),
        ("Gradients of a training step", f"{things} can be reconstructed in part", last),
    ):
        if rows:
            found.append(of_inversion(result, setting, subject, what, rows))
    return found


def of_inversion(result: GnqResult, setting: str, subject: str, what: str, rows: Sequence[PairedRow]) -> Finding:
    """Return what the clearest of several searches reconstructs beyond the control."""
    row = max(rows, key=lambda row: (row.clear(result.level), float(row.difference)))
    leaks = row.clear(result.level) > 0
    found = row.difference
    return Finding(
        setting=setting,
        subject=subject,
        level=LEAK if leaks else NONE_SEEN,
        text=f"{what} ({number_of(found, 'ssim')} above that of a control)" if leaks else "",
        metric="ssim",
        value=found,
        chance=0.0,
        seen_from=None if leaks or not found.bounded else shift(result, setting, max(found.errors)),
    )


def tested(result: GnqResult, setting: str, things: str) -> str:
    """Return what was asked about, in a sentence."""
    value = result.value
    count, size = pools(result, setting), value(setting, "split.train_size")
    defended = [arm for arm in of_setting(result.arms, setting) if arm.method != NONE]
    rankings = dict.fromkeys(arm.ranking for arm in defended if arm.ranking in CONTROLS)
    beside = [arm for arm in defended if arm.ranking in CONTROLS]
    parts = ["The model without a defence"]
    parts += [how_many(len(defended) - len(beside), "defence")] if len(defended) > len(beside) else []
    same = f"the same {' or '.join(CONTROLS[name] for name in rankings)}"
    parts += [f"{how_many(len(beside), 'control')} ({same}; table below)"] if beside else []
    arms = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    where = f"{value(setting, 'model.name')} on {value(setting, 'data.name')}"
    models = f"{2 * count} models of {size} {things} each ({where})" if size else where
    return f"{arms}: {models}, {how_many(len({row.attack for row in result.table}), 'attack')}"


def certainty(result: GnqResult, setting: str) -> str:
    """Return how sure the verdict is."""
    count = pools(result, setting)
    over = f"{percent(result.level, 0)} intervals over {count} independent pools of {noun(result.plan)}"
    over = over if count > 1 else "No interval, because there is only one pool; other draws may differ"
    return (
        f"{over}; {result.value(setting, 'split.shadows')} shadow models a pool, one plan seed. The strongest "
        f"attack is shown, picked afterwards, which overstates a little. {FOUR_IN_FIVE}"
    )
