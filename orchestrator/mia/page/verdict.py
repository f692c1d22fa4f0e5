"""The verdict of a membership run: does the model leak, do promises hold, has the audit power, who is exposed.

The attack of the verdict is fixed by the plan (``audit.judge``), never by what attacks found.
"""

from __future__ import annotations

from audits.statistics.one_target import SAYS
from orchestrator.mia.page.glossary import words
from orchestrator.mia.page.reading import MiaRun
from orchestrator.mia.result.controls import powerless
from orchestrator.mia.result.given import unlike_fits
from orchestrator.mia.result.rows import MiaRow
from orchestrator.report.chance import unsure
from orchestrator.report.numbers import estimate, number, percent
from orchestrator.report.sentence import Sentence


def verdict(run: MiaRun) -> list[Sentence]:
    """Return the statements about the main setting, in the order in which they should be read."""
    found = [
        leak(run),
        labels_alone(run),
        fair(run),
        promises(run),
        power(run),
        exposure(run),
        bound(run),
        fit(run),
        luck(run),
    ]
    return [sentence for sentence in found if sentence is not None]


def leak(run: MiaRun) -> Sentence:
    """Say what the judge finds, and what the strongest attack does."""
    head = "Training members"
    row = run.row(run.judge)
    if row is None:
        return Sentence(
            "bad", head, f"{words(run.judge)}, the attack of this verdict, has no result; see the warnings."
        )
    said = f"{words(row.attack)} tells members from non-members with AUC {estimate(row.auc)}; chance is .500."
    if row.above_chance:
        return Sentence("leak", head, f"The model reveals who it was trained on. {said} {calls(row)}{strongest(run)}")
    if not row.auc.bounded:
        return Sentence("plain", head, f"{said} A single pool gives no interval. {calls(row)}")
    if unsure(row, run.level):
        text = f"No leak can be told: {said[:-1]}. {by_the_test_alone(run)}"
        return Sentence("plain", head, f"{text} {calls(row)}{strongest(run)}")
    excluded = f"; above {number(row.auc.high)} is excluded" if row.auc.below(1.0) else ""
    return Sentence("plain", head, f"Not above chance: {said[:-1]}{excluded}. {calls(row)}{strongest(run)}")


def by_the_test_alone(run: MiaRun) -> str:
    """Return the sentence about attacks whose p-value is small, but whose interval holds one half."""
    return f"Beyond chance by p after Holm’s correction, but not by the interval over {run.over}."


def calls(row: MiaRow) -> str:
    """Return what calls at the promised rate find, and what they are worth."""
    if row.void:
        return "Its calls are void, because a promised rate is broken."
    rate = percent(row.promised_fpr, 0)
    text = f"At a promised false-positive rate of {rate} it recognises {estimate(row.tpr)} of the members."
    if row.worth_1.value is None or row.worth_10.value is None:
        return text
    one, ten = percent(row.worth_1.value, 0), percent(row.worth_10.value, 0)
    return f"{text} If 1 % of the points in question are members, {one} of its calls are right; if 10 %, {ten}."


def strongest(run: MiaRun) -> str:
    """Return the attack of the highest AUC where it is not the judge, in a sentence."""
    best = max(run.rows(), key=lambda row: float(row.auc))
    if best.attack == run.judge:
        return ""
    found = f"{words(best.attack)}, {estimate(best.auc)}"
    return f" The highest AUC is that of {found}; picked afterwards, it overstates."


def labels_alone(run: MiaRun) -> Sentence | None:
    """Say what labels alone give away; None in a run without such attacks."""
    rows = [row for row in run.rows() if row.access == "labels"]
    if not rows:
        return None
    listed = "; ".join(f"{words(row.attack)} AUC {estimate(row.auc)}" for row in rows)
    above = [row for row in rows if row.above_chance]
    open_ = not above and any(unsure(row, run.level) for row in rows)
    start = "Predicted classes are enough" if above else "No leak can be told" if open_ else "Not above chance"
    rest = f" {by_the_test_alone(run)}" if open_ else ""
    return Sentence("leak" if above else "plain", "Labels alone", f"{start}: {listed}.{rest}")


def promises(run: MiaRun) -> Sentence:
    """Say whether promised rates hold, on targets' non-members and on null models."""
    head = "Control: promised rates"
    every = [row for rate in run.rates for row in run.rows(rate=rate)]
    broken = [row for row in every if row.found_fpr_off or row.null_fpr_off]
    null = every[0].null_models if every else 0
    who = "points that targets did not train on"
    if run.given:
        who = f"{every[0].non_members} points that the given model did not train on" if every else who
    elif null:
        who = f"{who}, and on {null} null models"
    if not broken:
        rule = f"none of {len(every)} attack × rate cells is above its promise after Holm’s correction"
        return Sentence("good", head, f"They hold as far as this run can see: {rule} (on {who}).")
    names = ", ".join(dict.fromkeys(f"{words(row.attack)} at {percent(row.promised_fpr, 0)}" for row in broken))
    text = f"Broken in {len(broken)} of {len(every)} cells: {names}. Their TPR and p-values are void."
    return Sentence("bad", head, text)


def power(run: MiaRun) -> Sentence:
    """Say whether the positive control is found: points with a wrong label."""
    if run.given:
        return own_power(run)
    head = "Control: canaries"
    if not run.canaries:
        return Sentence("bad", head, "Not in this run, so a null result may only mean that the audit has no power.")
    own = next((row for row in run.canaries if row.attack == run.judge), run.canaries[0])
    said = f"{words(own.attack)} finds points with a wrong label with AUC {estimate(own.auc)}"
    blind = [words(row.attack) for row in powerless(run.canaries)]
    theirs = "their null results say" if len(blind) > 1 else "its null results say"
    rest = f" Not found by {', '.join(blind)}: {theirs} little." if blind else ""
    if own.auc.above(0.5):
        return Sentence("good", head, f"The audit has power: {said}.{rest}")
    return Sentence(
        "bad",
        head,
        f"{said}, which is not above chance: the model memorises nothing, or the attack has no power.{rest}",
    )


def own_power(run: MiaRun) -> Sentence:
    """Say whether attacks find members of the plan's own models, beside a given one."""
    head = "Control: models trained by the plan"
    if not run.own:
        return Sentence("bad", head, "Not in this run, so a null result may only mean that the audit has no power.")
    row = next((each for each in run.own if each.attack == run.judge), run.own[0])
    said = f"{words(row.attack)} reaches AUC {estimate(row.auc)} on two models trained by the plan"
    if unlike := unlike_fits([fit for fit in run.result.fit if fit.setting == run.main_setting]):
        return Sentence("bad", head, f"{said}, but {unlike[0]}.")
    if row.auc.above(0.5):
        return Sentence("good", head, f"The audit has power: {said}.")
    text = f"{said}, which is not above chance: the recipe memorises nothing, or the attack has no power."
    return Sentence("bad", head, text)


def fair(run: MiaRun) -> Sentence | None:
    """Say whether members of a given model differ from others by what they are; None where targets were trained."""
    if run.blind is None:
        return None
    head, said = "Control: without the model", f"from inputs and labels alone (AUC {estimate(run.blind.auc)})"
    if run.blind.differ:
        text = f"Members differ from non-members {said}. What attacks find may be this difference, not membership."
        return Sentence("bad", head, text)
    return Sentence("good", head, f"Members cannot be told from non-members {said}.")


def exposure(run: MiaRun) -> Sentence | None:
    """Say how many members are exposed one by one."""
    row = next((each for each in run.discoveries if each.attack == run.judge), None)
    if row is None:
        return None
    head = "Exposed points"
    if row.void:
        return Sentence("bad", head, f"Void: the p-values of {words(row.attack)} do not hold.")
    if not row.discoveries:
        text = f"{words(row.attack)} finds no single member at a false discovery rate of {percent(row.claimed_fdr, 0)}."
        return Sentence("plain", head, text)
    text = (
        f"{words(row.attack)} finds {row.discoveries} single points, {row.false} of them wrongly "
        f"({percent(row.fdp.value)}, allowed {percent(row.claimed_fdr, 0)}): {estimate(row.power)} of all members."
    )
    return Sentence("leak", head, text)


def bound(run: MiaRun) -> Sentence | None:
    """Say which ε is ruled out, by the judge where it guesses about all pairs or the surest."""
    rows = [row for row in run.epsilons if row.attack == run.judge]
    if not rows:
        return None
    told = "; ".join(f"{row.epsilon:.2f} from {row.right} of {row.guesses} guesses right" for row in rows)
    text = (
        f"Guesses by {words(run.judge)} about pairs show that training is not (ε, {rows[0].delta:g})-differentially "
        f"private for ε below {told}. The shares of pairs were fixed beforehand, and each bound holds by itself. The "
        "true ε of this recipe may be much larger."
    )
    return Sentence("plain", "Lower bound on ε", text)


def fit(run: MiaRun) -> Sentence | None:
    """Say how far training and test accuracy lie apart."""
    row = next((each for each in run.result.fit if (each.setting, each.group) == (run.main_setting, "target")), None)
    if row is None:
        return None
    who = "the given model" if run.given else "the targets"
    text = (
        f"Training accuracy of {who}: {number(row.train_accuracy)}; test accuracy: {number(row.test_accuracy)}. The "
        f"gap of {number(row.gap)} alone gives an AUC of {number(0.5 + row.gap / 2)} (label gap)."
    )
    return Sentence("plain", "Fit", text)


def luck(run: MiaRun) -> Sentence:
    """Say how many intervals would miss the truth by luck."""
    intervals, missed = f"{len(run.attacks)} AUC intervals ({percent(run.level, 0)} each)", run.result.expected_misses
    if run.given:
        return Sentence(
            "plain",
            "Scope",
            f"{SAYS} Of {intervals}, about {missed:.1f} are expected to miss the truth by chance. A null result is no "
            "proof of safety: stronger attacks may come.",
        )
    text = (
        f"Of {intervals}, about {missed:.1f} are expected to miss the truth by chance. Attacks share models and "
        "points, so misses come together. Intervals are about further pools and models of this recipe. A null result "
        "is no proof of safety: stronger attacks may come."
    )
    return Sentence("plain", "Luck", text)
