"""The verdict of a GNQ run in detail: published model, removal, DP-SGD, inversion, predictions, luck.

Groups and arms are compared by one attack, fixed by name (``reading.JUDGES``); only the headline of an arm is its
strongest attack. A difference counts where its whole interval, and p after Holm's correction, lie beyond zero.
"""

from __future__ import annotations

from orchestrator.gnq.page.checks import luck, predictions
from orchestrator.gnq.page.gradient_inversion import gradient_verdict
from orchestrator.gnq.page.inversion import inversion_verdict
from orchestrator.gnq.page.numbers import change, headline_words, onion_change, standing
from orchestrator.gnq.page.reading import BEST_SHADOWS, CONTRIBUTORS, KEPT, KEPT_UNFILTERED, GnqRun, clear
from orchestrator.gnq.result.rows import ArmRow, ComparisonRow
from orchestrator.gnq.result.words import arm_words, words
from orchestrator.judgement.wording import capital
from orchestrator.report.numbers import estimate, number
from orchestrator.report.sentence import Sentence

REMOVAL = (
    "Removal lowers the average exposure, mostly because exposed points are left out. The points kept are not "
    "protected, and some become exposed."
)
DIVERGED = "Not judged, because training diverged in some of its models; see the warnings."
MOST_REMOVALS = 4
"""Removals with a sentence of their own, in the order of the plan."""


def verdict(run: GnqRun) -> list[Sentence]:
    """Return the statements about the main setting of a run, in the order in which they should be read."""
    setting = run.main_setting
    sentences = [published(run, setting)]
    removals = run.removals(setting)
    sentences += [removal_gain(run, setting, arm) for arm in removals[:MOST_REMOVALS]]
    if others := "; ".join(f"{arm_words(arm)} {headline_words(arm)}" for arm in removals[MOST_REMOVALS:]):
        sentences.append(Sentence("plain", "Other removals", f"Headline AUC: {others}."))
    sentences += [other_arm(run, setting, arm) for arm in run.arms(setting) if arm.method in ("dp_sgd", "noise")]
    if any(arm.method == "remove" for arm in run.arms(setting)):
        sentences.append(removal(run, setting))
    sentences += [*inversion_verdict(run, setting), *gradient_verdict(run, setting)]
    sentences += [*predictions(run, setting), luck(run)]
    return sentences


def published(run: GnqRun, setting: str) -> Sentence:
    """Say what the model gives away that nothing was done for."""
    head = "Published model"
    arm = run.undefended(setting)
    best = arm.headline if arm else None
    if arm is None or best is None:
        return Sentence("plain", head, "Not in this run: no undefended model was attacked.")
    accuracy = f"Its test accuracy is {estimate(arm.test_accuracy)}."
    attack = words(best.attack)
    area = f"AUC {headline_words(arm)}; chance is .500."
    found = f"The strongest attack ({attack}) tells members from non-members with {area}"
    if not best.auc.bounded:
        return Sentence(
            "plain", head, f"{found} A single pool gives no interval, and other draws may differ. {accuracy}"
        )
    if best.above_chance:
        return Sentence("leak", head, f"{found} {accuracy}")
    if best.auc.below(0.5):
        return Sentence("bad", head, f"{found} That is below chance; explain it before using the attack. {accuracy}")
    excluded = f"an AUC above {number(best.auc.high)} is ruled out" if best.auc.below(1.0) else "no AUC is ruled out"
    null = f"A null result: not above chance; {excluded}."
    return Sentence("plain", head, f"{found} {null} {accuracy}")


def removal_gain(run: GnqRun, setting: str, arm: ArmRow) -> Sentence:
    """Say what one removal changes, and whether that is more than removing at random or by loss does."""
    if arm.diverged:
        return Sentence("bad", _title(arm), DIVERGED)
    base, random, loss = run.against(setting, arm)
    parts = [_change_words(run, setting, arm, base)]
    for row, name in ((random, "removing as many at random"), (loss, "removing as many by their loss along training")):
        if row is None or not row.difference.known:
            parts.append(f"This run did not measure what {name} does.")
            continue
        found = standing(row, run.level, "lower", "higher", "no difference is shown")
        parts.append(f"Against {name} {change(row)}: {found}.")
    helps = all(clear(row, run.level) < 0 for row in (base, random, loss))
    return Sentence("good" if helps else "plain", _title(arm), " ".join(parts))


def other_arm(run: GnqRun, setting: str, arm: ArmRow) -> Sentence:
    """Say what DP-SGD, or noise on some gradients, changes and costs."""
    if arm.diverged:
        return Sentence("bad", _title(arm), DIVERGED)
    base, random, _ = run.against(setting, arm)
    text = _change_words(run, setting, arm, base)
    if arm.method == "dp_sgd":
        counted = f", counted by {arm.accountant.upper()}" if arm.accountant else ""
        delta = "" if arm.delta is None else f" (δ = {arm.delta:g}{counted})"
        text += f" Its ε{delta} bounds every attack on every point, loosely where it is large. Removal gives no bound."
    else:
        if random is not None:
            found = standing(random, run.level, "lower", "higher", "no difference is shown")
            text += f" Against noise on as many points at random {change(random)}: {found}."
        text += " Noise on some gradients only gives no bound such as ε."
    control = arm.ranking == "random"
    if control:
        text += " This is a control: the points are chosen at random."
    helps = all(clear(row, run.level) < 0 for row in (base, *([random] if random else [])))
    return Sentence("good" if helps and not control else "plain", _title(arm), text)


def removal(run: GnqRun, setting: str) -> Sentence:
    """Say what removal is, and by what steps it came about in this run."""
    parts = [REMOVAL]
    rows = [run.against(setting, arm)[0] for arm in run.removals(setting)]
    if rows and not any(row and row.difference.side < 0 for row in rows):
        parts.append("This run shows no lower average.")
    for arm in run.removals(setting)[:1]:  # the others go the same way; the tables have them
        steps = _steps(run, setting, arm)
        if steps:
            parts.append(f"{_title(arm)}, by {words(run.judge)}: {steps}.")
        if seen := arm.onion:
            chance = f"by chance {number(seen.floor)}{_random_onion(run, setting, arm)}"
            moved = estimate(onion_change(seen), signed=True)
            shares = f"{number(seen.before)} before, {estimate(seen.after)} after, {moved}"
            parts.append(f"Fully exposed among the points kept: {shares} ({chance}).")
    parts += _artefact(run, setting)
    return Sentence("plain", "Removal", " ".join(parts))


def _steps(run: GnqRun, setting: str, arm: ArmRow) -> str:
    """Return the AUCs on the way from everybody, through the kept points before, to the kept points after.

    The kept points before and after are judged by shadows that know as much; without such a row the step is left out.
    """
    base = run.undefended(setting)
    whole = run.cell(setting, base.arm, CONTRIBUTORS, run.judge, BEST_SHADOWS) if base else None
    after = run.kept(setting, arm)
    before = run.cell(setting, arm.arm, KEPT, run.judge, (after.shadows,), "before") if after else None
    told = (
        (whole, "all points without a defence"),
        (before, "the kept points before the removal"),
        (after, "the same points in the new model" if before else "the kept points in the new model"),
    )
    return ", ".join(f"{text} {estimate(row.auc)}" for row, text in told if row and row.auc.known)


def _artefact(run: GnqRun, setting: str) -> list[str]:
    """Return what the comparison that is filtered on one side finds where there is nothing to find, in a sentence."""
    for arm in run.removals(setting):
        row = run.cell(setting, arm.arm, KEPT_UNFILTERED, run.judge, ("naive", "none"), "null")
        if row and row.auc.known:
            seen = f"{estimate(row.auc)} on models that saw no point ({arm_words(arm)})"
            return [f"Kept points against all non-members: AUC {seen}. The difference from .500 comes from the filter."]
    return []


def _random_onion(run: GnqRun, setting: str, arm: ArmRow) -> str:
    """Return what as many points removed at random do to the points kept, for a bracket."""
    other = run.control_arm(setting, "random", arm)
    return f"; removal at random {number(other.onion.after.value)}" if other and other.onion else ""


def _title(arm: ArmRow) -> str:
    """Return an arm's words as the start of a sentence."""
    return capital(arm_words(arm))


def _change_words(run: GnqRun, setting: str, arm: ArmRow, base: ComparisonRow | None) -> str:
    """Return headline, change against no defence and cost in accuracy of one arm."""
    best = arm.headline
    text = "It was not attacked." if best is None else f"Headline AUC {headline_words(arm)} ({words(best.attack)})."
    if base is None or not base.difference.known:
        return f"{text} Not compared with a model without a defence."
    cost = estimate(base.accuracy, signed=True)
    found = standing(base, run.level, "lower", "higher", "no difference is shown")
    by = f"by {words(run.judge)}"
    return f"{text} Against no defence {change(base)} {by}: {found}. Test accuracy changes by {cost}."
