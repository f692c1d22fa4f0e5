"""Sentences on the worth of a GNQ run: its control, what GNQ predicts beside free scores, and luck."""

from __future__ import annotations

from audits.statistics.null import expected_misses
from orchestrator.gnq.page.glossary import GROUPS, SHADOWS, arm_words, words
from orchestrator.gnq.page.numbers import change, standing
from orchestrator.gnq.page.reading import KEPT_UNFILTERED, SAME_RULE, GnqRun, clear
from orchestrator.report.numbers import estimate, percent
from orchestrator.report.result import of_setting
from orchestrator.report.sentence import Sentence
from orchestrator.report.words import ranking_words


def control(run: GnqRun, setting: str) -> Sentence:
    """Say whether attacks find nothing on models that saw none of the points."""
    head = "Control: models that saw no point"
    rows = [row for row in of_setting(run.result.table, setting) if row.moment == "null" and row.auc.bounded]
    held = [row for row in rows if row.group in SAME_RULE]
    if not held:
        return Sentence("bad", head, "Not in this run: nothing shows that the comparisons are fair.")
    off = [row for row in held if not row.auc.holds(0.5)]
    luck_allows = expected_misses(len(held), run.level)
    names = {arm.arm: arm_words(arm) for arm in run.arms(setting)}
    said = "; ".join(
        f"{names[row.arm]}, {GROUPS[row.group]}, {words(row.attack)} with {SHADOWS[row.shadows]} {estimate(row.auc)}"
        for row in off[:4]
    )
    fair = f"{len(held) - len(off)} of {len(held)} fair comparisons"
    text = f"In {fair} the interval holds .500 (luck alone: {luck_allows:.1f} miss)."
    if said:
        text += f" It does not for {said}{'; …' if len(off) > 4 else ''}."
    sure = [row for row in off if row.p_holm is not None and row.p_holm <= 1 - run.level]
    if sure:
        text += f" After Holm's correction over all of them {len(sure)} still {'does' if len(sure) == 1 else 'do'} not."
    broken = bool(sure) or len(off) > 2 * luck_allows + 1
    if broken:
        text += " That is more than luck: the attacks or the comparison see something other than training."
    return Sentence("bad" if broken else "good", head, text + _artefact(run, setting))


def _artefact(run: GnqRun, setting: str) -> str:
    """Return what the comparison that is filtered on one side finds where there is nothing to find."""
    for arm in run.removals(setting):
        row = run.cell(setting, arm.arm, KEPT_UNFILTERED, run.judge, ("naive", "none"), "null")
        if row and row.auc.known:
            seen = f"{estimate(row.auc)} on such models ({arm_words(arm)})"
            return (
                f" Kept points against all non-members gives AUC {seen}: what differs from .500 is made by the filter."
            )
    return ""


def predictions(run: GnqRun, setting: str) -> list[Sentence]:
    """Say how well GNQ predicts what attacks find, and whether it beats scores that cost nothing."""
    rows = [row for row in of_setting(run.result.correlations, setting) if row.score == run.main_score]
    parts, beaten = [], []
    for row in (row for row in rows if row.spearman.known):
        gains = [
            gain
            for gain in of_setting(run.result.gains, setting)
            if (gain.score, gain.outcome) == (run.main_score, row.outcome) and gain.control != "random"
        ]
        gains = [gain for gain in gains if gain.difference.known]
        parts.append(f"With {words(row.outcome)}: Spearman {estimate(row.spearman)}")
        if not gains:
            parts[-1] += ", with no control beside it."
            continue
        least = min(gains, key=lambda gain: float(gain.difference))
        beaten.append(clear(least, run.level) > 0)
        found = standing(least, run.level, "worse", "a gain", "no gain over it is shown")
        parts[-1] += f"; best control {ranking_words(least.control)}, GNQ minus it {change(least)}: {found}."
    head = "Predictions by GNQ"
    return [Sentence("good" if beaten and all(beaten) else "plain", head, " ".join(parts))] if parts else []


def luck(run: GnqRun) -> Sentence:
    """Say how many intervals would miss the truth by luck, and what a null result is worth."""
    cells = sum(row.auc.low is not None for row in run.result.table)
    missed = f"{expected_misses(cells, run.level):.1f} may miss the truth by luck"
    counted = (
        f"Of {cells} AUC intervals ({percent(run.level, 0)}) about {missed}." if cells else "There is no interval."
    )
    text = (
        f"{counted} The headline of an arm is its strongest attack, picked afterwards, and leans high; arms and groups "
        f"are compared by {words(run.judge)}, fixed by name. Bits are an estimate of a bound under the "
        "Gaussian model, never a guarantee. A null result is no proof of safety."
    )
    return Sentence("plain", "Luck", text)
