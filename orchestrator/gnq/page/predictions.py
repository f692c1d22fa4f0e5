"""Tables of what scores predict: correlations with what attacks find, gains over controls, AUC by bin."""

from __future__ import annotations

from orchestrator.gnq.page.glossary import RULES
from orchestrator.gnq.page.numbers import change_entry, holm_p
from orchestrator.gnq.page.reading import GnqRun, scores_of
from orchestrator.gnq.result.words import words
from orchestrator.report.grid import Column, Grid, grid, left
from orchestrator.report.numbers import entry, percent
from orchestrator.report.result import of_setting
from orchestrator.report.words import ranking_words

BESIDE = "loss_log"
"""The control that the score of the verdict is set beside: fixed by name, whatever they predict."""


def correlation_grid(run: GnqRun, setting: str) -> Grid | None:
    """Return score × outcome: Spearman correlation with its interval; None where nothing was measured."""
    rows = of_setting(run.result.correlations, setting)
    outcomes = list(dict.fromkeys(row.outcome for row in rows))
    found = {(row.score, row.outcome): row.spearman for row in rows}
    controls = {row.score for row in rows if row.control}
    body = [
        [
            ranking_words(score),
            "control" if score in controls else "",
            *(entry(found.get((score, outcome))) for outcome in outcomes),
        ]
        for score in scores_of(rows)
    ]
    columns = [left("score"), left(""), *(f"{words(outcome)} [{percent(run.level, 0)}]" for outcome in outcomes)]
    title = f"{setting}: rank correlation of each score with what attacks find"
    return grid(f"correlations-{setting}", title, columns, body) if body else None


def prediction_setting_grid(run: GnqRun) -> Grid | None:
    """Return setting × outcome: Spearman of GNQ, and its gain over the summed loss; None where all agree."""
    correlations = {(row.setting, row.score, row.outcome): row for row in run.result.correlations}
    gains = {(row.setting, row.score, row.outcome, row.control): row for row in run.result.gains}
    outcomes = list(dict.fromkeys(row.outcome for row in run.result.correlations))
    body = []
    for setting in run.settings:
        line: list[object] = [setting]
        for outcome in outcomes:
            found = correlations.get((setting, run.main_score, outcome))
            line.append(entry(found.spearman if found else None))
            line.append(change_entry(gains.get((setting, run.main_score, outcome, BESIDE)), run.level))
        body.append(line)
    level = percent(run.level, 0)
    head = [part for name in outcomes for part in (f"{words(name)}\n[{level}]", Column("minus loss", narrow="short"))]
    differ = len({tuple(map(str, line[1:])) for line in body}) > 1
    title = "GNQ with what attacks find, by setting; * after Holm’s correction"
    return grid("predictions", title, [left("setting"), *head], body) if outcomes and differ else None


def gain_grid(run: GnqRun, setting: str) -> Grid | None:
    """Return how much better each score of GNQ predicts than each control, paired by pool; None without any."""
    rows = of_setting(run.result.gains, setting)
    body = [
        [
            ranking_words(row.score),
            ranking_words(row.control),
            words(row.outcome),
            change_entry(row, run.level),
            holm_p(row),
        ]
        for score in scores_of(rows)
        for row in rows
        if row.score == score
    ]
    columns = [left("score"), left("control"), left("outcome"), f"difference [{percent(run.level, 0)}]", "p (Holm)"]
    title = f"{setting}: correlation of GNQ minus that of controls, paired by pool; * after Holm’s correction"
    return grid(f"gains-{setting}", title, columns, body) if body else None


def bin_grid(run: GnqRun, setting: str) -> Grid | None:
    """Return AUC by bin of each score and rule, least exposed first; None where nothing was measured."""
    rows = of_setting(run.result.bins, setting)
    if not rows:
        return None
    bins = sorted({row.bin for row in rows})
    found = {(row.score, row.rule, row.bin): row.auc for row in rows}
    body = [
        [ranking_words(score), RULES[rule], *(entry(found.get((score, rule, place))) for place in bins)]
        for score in scores_of(rows)
        for rule in RULES
        if any((row.score, row.rule) == (score, rule) for row in rows)
    ]
    size = f"about {rows[0].points:g} points"
    title = f"{setting}: AUC of {words('lira')} by bin of a score, bin 1 least exposed, {size}"
    return grid(f"bins-{setting}", title, [left("score"), left("non-members"), *bins], body)
