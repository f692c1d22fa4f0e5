"""Sentences on the worth of a GNQ run: what GNQ predicts beside free scores, and luck."""

from __future__ import annotations

from audits.statistics.null import expected_misses
from orchestrator.gnq.page.numbers import change, standing
from orchestrator.gnq.page.reading import GnqRun, clear
from orchestrator.gnq.result.words import words
from orchestrator.report.numbers import estimate, percent
from orchestrator.report.result import of_setting
from orchestrator.report.sentence import Sentence
from orchestrator.report.words import ranking_words


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
            parts[-1] += ", without a control."
            continue
        least = min(gains, key=lambda gain: float(gain.difference))
        beaten.append(clear(least, run.level) > 0)
        found = standing(least, run.level, "worse", "a gain", "no gain is shown")
        parts[-1] += f"; minus the best control ({ranking_words(least.control)}) {change(least)}: {found}."
    head = "Predictions by GNQ"
    return [Sentence("good" if beaten and all(beaten) else "plain", head, " ".join(parts))] if parts else []


def luck(run: GnqRun) -> Sentence:
    """Say how many intervals would miss the truth by luck, and what a null result is worth."""
    cells = sum(row.auc.low is not None for row in run.result.table)
    missed = f"{expected_misses(cells, run.level):.1f} are expected to miss the truth by chance"
    counted = (
        f"Of {cells} AUC intervals ({percent(run.level, 0)} each), about {missed}."
        if cells
        else "There is no interval."
    )
    text = (
        f"{counted} The headline of an arm is its strongest attack, picked afterwards, which overstates. Arms and "
        f"groups are compared by {words(run.judge)}, fixed beforehand. Bits estimate a bound under a Gaussian model "
        "and are no guarantee. A null result is no proof of safety."
    )
    return Sentence("plain", "Luck", text)
