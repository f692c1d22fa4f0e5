"""The sentences of the page and the terminal about judged scores."""

from __future__ import annotations

from orchestrator.judgement.wording import capital
from orchestrator.report.chance import unsure
from orchestrator.report.numbers import bounds, number, percent, small_p
from orchestrator.report.sentence import Sentence
from orchestrator.scored.rows import ScoreResult, ScoreRow

GLOSSARY = {
    "AUC": "The chance that a random member scores higher than a random non-member of the same target; 0.5 is "
    "guessing. Mean over targets.",
    "p (Holm)": "How often random membership within each target would put the AUC as far from 0.5, corrected for the "
    "number of attacks.",
    "FPR, TPR": "Shares of non-members and of members that are called members. Each target’s threshold is set on one "
    "random half of its non-members and judged on the other, so no point sets its own.",
    "read off its own ROC": "The TPR that most tools report: the threshold is chosen on the points that it judges, "
    "which flatters the attack where points are few.",
    "PPV": "Positive predictive value: the share of “member” calls that are right if only 1 % or 10 % of the points in "
    "question are members. Its interval combines those of TPR and FPR and is rather wide.",
    "ε at least": "With a smaller ε, so many right guesses about pairs would be unlikely. The bound holds if the "
    "members were drawn at random from the points, each as likely as any other (not split by date, source or name), "
    "and if the attack learned nothing from the draw.",
}


def verdict(run: ScoreResult) -> list[Sentence]:
    """Return the verdict: how well members are told, and what the intervals cover."""
    first = {(row.setting, row.attack): row for row in reversed(run.table)}
    best = max(first.values(), key=lambda row: float(row.auc))
    above = [row for row in first.values() if row.above_chance]
    if above:
        head = (
            f"{len(above)} of {len(first)} attacks tell members from non-members" if len(first) > 1 else "Members show"
        )
        found = Sentence("leak", head, f"The highest AUC is {_area(best)}, by {best.attack}.")
    else:
        p = small_p(best.auc_p_holm)
        open_ = [row.attack for row in first.values() if unsure(row, run.level)]
        head = "No leak can be told" if open_ else "No attack is above chance"
        rest = f" By p alone, but not by the interval, above chance: {', '.join(open_)}." if open_ else ""
        text = f"The highest AUC is {_area(best)}, by {best.attack}; p = {p}.{rest} This does not prove privacy."
        found = Sentence("plain", head, text)
    return [found, _rate(best, run), Sentence("plain", "Intervals", run.covers), _epsilon(run)]


def _area(row: ScoreRow) -> str:
    return f"{number(row.auc.value)} {bounds(row.auc)}".strip()


def _rate(row: ScoreRow, run: ScoreResult) -> Sentence:
    """Return what the best attack finds at the lowest rate, and what that is worth in a crowd."""
    rate = row.promised_fpr
    if row.void:
        text = f"{row.attack} calls more non-members than it promises, so what its decisions find is void."
        return Sentence("bad", "In a crowd", text)
    told = f"{row.attack} finds {percent(row.tpr.value)} of the members at a false-positive rate of {rate * 100:g} %"
    worth = [
        f"{percent(value.value.value)} at a prior of {percent(value.prior, 0)}"
        for value in run.predictive_values
        if (value.setting, value.attack, value.promised_fpr) == (row.setting, row.attack, rate)
        and value.value.value is not None
    ]
    return Sentence(
        "plain",
        "In a crowd",
        told + (f". Of its “member” calls, {' and '.join(worth)} are right." if worth else "."),
    )


def _epsilon(run: ScoreResult) -> Sentence:
    """Return the largest bound on ε, or why there is none."""
    if run.no_epsilon:
        return Sentence("plain", "No bound on ε", f"{capital(run.no_epsilon)}.")
    best = max(run.epsilons, key=lambda row: row.at_least)
    text = (
        f"{best.right} right of {best.guesses} guesses about {best.pairs} pairs give ε ≥ {best.at_least:.2f} at δ = "
        f"{best.delta:g} ({best.attack}), if the members were drawn at random."
    )
    return Sentence("plain", "Privacy", text)


def closing_lines(run: ScoreResult) -> list[str]:
    """Return the lines below the tables on a terminal."""
    epsilon = _epsilon(run)
    return [*run.notes, run.covers, f"{epsilon.head}: {epsilon.text}"]
