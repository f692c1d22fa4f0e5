"""The verdict of a GNQ run: can training points be recognised in what is published, and does a defence help?"""

from __future__ import annotations

from collections.abc import Sequence

from audits.errors import how_many
from audits.statistics.power import detectable_shift
from orchestrator.gnq.page.glossary import arm_words, words
from orchestrator.gnq.page.gradient_inversion import JUDGE as RECOVERED
from orchestrator.gnq.page.gradient_inversion import OTHER
from orchestrator.gnq.page.inversion import JUDGE, TWIN
from orchestrator.gnq.page.reading import CONTROLS, NONE, GnqRun
from orchestrator.gnq.result.controls import NULL_MODELS, fair
from orchestrator.gnq.result.paired import PairedRow
from orchestrator.gnq.result.rows import ArmRow
from orchestrator.judgement.rows import (
    FAILED,
    FINDINGS,
    HELD,
    LEAK,
    MISSING,
    NONE_SEEN,
    UNTOLD,
    Control,
    Finding,
    Verdict,
)
from orchestrator.judgement.rule import few_points, verdict_of
from orchestrator.judgement.wording import FOUR_IN_FIVE, Wording, advice, capital, number_of
from orchestrator.report.nouns import noun
from orchestrator.report.numbers import percent
from orchestrator.report.result import of_setting
from orchestrator.report.words import access_level

BESIDE = {"random": "at random", "loss_log": "by loss"}
"""Rankings of controls → how their points are chosen."""


def answer(run: GnqRun) -> Verdict:
    """Return the verdict of a run."""
    things, setting = noun(run.result.plan), run.main_setting
    return verdict_of(
        [part for name in run.settings for part in findings(run, name, things)],
        [control for name in run.settings for control in controls(run, name)],
        main={setting},
        wording=wording(things),
        tested=tested(run, setting, things),
        access=sorted(dict.fromkeys(row.access for row in of_setting(run.result.table, setting)), key=access_level),
        certainty=certainty(run, setting),
        too_small=few_points(run.result.value(setting, "split.train_size"), things),
        about=run.result.about,
    )


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
    )


def findings(run: GnqRun, setting: str, things: str) -> list[Finding]:
    """Return what attacks find in each arm that is no control, and what can be reconstructed."""
    arms = [arm for arm in run.arms(setting) if arm.ranking not in CONTROLS]
    return [*(of_arm(run, setting, arm) for arm in arms), *reconstructed(run, setting, things)]


def of_arm(run: GnqRun, setting: str, arm: ArmRow) -> Finding:
    """Return what the strongest attack on all contributors finds in one arm."""
    text = arm_words(arm)
    subject = "The model without a defence" if arm.method == NONE else capital(text)
    best = arm.headline
    if best is None:
        why = "training diverged" if arm.diverged else "no attack has a result"
        return Finding(setting=setting, subject=subject, level=UNTOLD, why=why, chance=0.5)
    silent = not best.above_chance and best.auc.bounded
    return Finding(
        setting=setting,
        subject=subject,
        level=LEAK if best.above_chance else NONE_SEEN,
        attack=best.attack,
        access=next((row.access for row in run.result.table if row.attack == best.attack), None),
        value=best.auc,
        chance=0.5,
        seen_from=0.5 + shift(run, setting, max(best.auc.errors)) if silent else None,
    )


def shift(run: GnqRun, setting: str, error: float) -> float:
    """Return the smallest distance from chance that an interval over the pools would have shown."""
    return detectable_shift(error, max(1, pools(run, setting) - 1), run.level)


def pools(run: GnqRun, setting: str) -> int:
    """Return over how many pools intervals are."""
    return max((row.pools for row in of_setting(run.result.table, setting)), default=1)


def reconstructed(run: GnqRun, setting: str, things: str) -> list[Finding]:
    """Return whether inversion shows training points better than models, or gradients, that know nothing of them."""
    model = [
        row
        for row in of_setting(run.result.inversion_gains, setting)
        if (row.arm, row.against, row.measure) == (NONE, TWIN, JUDGE)
    ]
    steps = [
        row
        for row in of_setting(run.result.gradient_inversion_gains, setting)
        if (row.measure, row.against) == (RECOVERED, OTHER)
    ]
    last = [row for row in steps if row.step == max(each.step for each in steps)]
    found = []
    for subject, what, rows in (
        ("Model inversion", f"training {things} can be reconstructed in part", model),
        ("Gradients of a training step", f"{things} can be reconstructed in part", last),
    ):
        if rows:
            found.append(of_inversion(run, setting, subject, what, rows))
    return found


def of_inversion(run: GnqRun, setting: str, subject: str, what: str, rows: Sequence[PairedRow]) -> Finding:
    """Return what the clearest of several searches reconstructs beyond the control."""
    row = max(rows, key=lambda row: (row.clear(run.level), float(row.difference)))
    leaks = row.clear(run.level) > 0
    found = row.difference
    return Finding(
        setting=setting,
        subject=subject,
        level=LEAK if leaks else NONE_SEEN,
        text=f"{what} ({number_of(found, 'ssim')} above that of a control)" if leaks else "",
        metric="ssim",
        value=found,
        chance=0.0,
        seen_from=None if leaks or not found.bounded else shift(run, setting, max(found.errors)),
    )


def controls(run: GnqRun, setting: str) -> list[Control]:
    """Return the control of a setting: nothing is found in models that saw none of the points."""
    rows = fair(of_setting(run.result.table, setting))
    if not rows:
        text = "False alarms of the audit itself would go unnoticed."
        return [NULL_MODELS.row(FINDINGS, MISSING, setting, text)]
    off = dict.fromkeys(words(row.attack) for row in rows if row.off)
    if off:
        text = f"Points are told from others even there, by {', '.join(off)}."
        return [NULL_MODELS.row(FINDINGS, FAILED, setting, text)]
    return [NULL_MODELS.row(FINDINGS, HELD, setting, "As it should be, nothing is found there.")]


def tested(run: GnqRun, setting: str, things: str) -> str:
    """Return what was asked about, in a sentence."""
    value = run.result.value
    count, size = pools(run, setting), value(setting, "split.train_size")
    defended = [arm for arm in run.arms(setting) if arm.method != NONE]
    rankings = dict.fromkeys(arm.ranking for arm in defended if arm.ranking in CONTROLS)
    beside = [arm for arm in defended if arm.ranking in CONTROLS]
    parts = ["The model without a defence"]
    parts += [how_many(len(defended) - len(beside), "defence")] if len(defended) > len(beside) else []
    same = f"the same {' or '.join(BESIDE[name] for name in rankings)}"
    parts += [f"{how_many(len(beside), 'control')} ({same}; table below)"] if beside else []
    arms = " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1])))
    where = f"{value(setting, 'model.name')} on {value(setting, 'data.name')}"
    models = f"{2 * count} models of {size} {things} each ({where})" if size else where
    return f"{arms}: {models}, {how_many(len(run.attacks), 'attack')}"


def certainty(run: GnqRun, setting: str) -> str:
    """Return how sure the verdict is."""
    count = pools(run, setting)
    over = f"{percent(run.level, 0)} intervals over {count} independent pools of {noun(run.result.plan)}"
    over = over if count > 1 else "No interval, because there is only one pool; other draws may differ"
    return (
        f"{over}; {run.result.value(setting, 'split.shadows')} shadow models a pool, one plan seed. The strongest "
        f"attack is shown, picked afterwards, which overstates a little. {FOUR_IN_FIVE}"
    )
