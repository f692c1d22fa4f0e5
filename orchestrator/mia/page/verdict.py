"""The verdict of a membership run in detail: does the model leak, and who is exposed.

The attack of the verdict is fixed by the plan (``audit.judge``), never by what attacks found.
"""

from __future__ import annotations

from audits.statistics.one_target import SAYS
from orchestrator.mia.page.reading import MiaRun
from orchestrator.mia.result.rows import MiaRow
from orchestrator.mia.result.words import words
from orchestrator.report.chance import unsure
from orchestrator.report.numbers import estimate, number, percent
from orchestrator.report.sentence import Sentence


def verdict(run: MiaRun) -> list[Sentence]:
    """Return the statements about the main setting, in the order in which they should be read."""
    found = [
        leak(run),
        labels_alone(run),
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
