"""Tables of judged scores."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.judgement.wording import DASH
from orchestrator.report.chance import STAR_RULE, starred
from orchestrator.report.controls import controls_grid
from orchestrator.report.grid import Column, Entry, Grid, Group, bold, grid, left, red
from orchestrator.report.numbers import VOID, entry, number, percent, small_p
from orchestrator.scored.rows import ScoreResult, ScoreRow, ValueRow

SHORT_NAME = 12
"""Characters of an attack that leave a terminal of 80 columns room for all others."""


def main_grid(run: ScoreResult) -> Grid:
    """Return AUC, TPR and predictive values of every attack."""
    priors = list(dict.fromkeys(row.prior for row in run.predictive_values))
    values = {(row.setting, row.attack, row.promised_fpr, row.prior): row for row in run.predictive_values}
    spare = max(len(row.attack) for row in run.table) <= SHORT_NAME
    columns = (
        left("attack", merge=True),
        Column("AUC", merge=True),
        Column("p (Holm)", merge=True, narrow="short"),
        Column("FPR"),
        Column("TPR"),
        *(_prior_column(prior, spare) for prior in priors),
    )
    groups = []
    for setting in dict.fromkeys(row.setting for row in run.table):
        own = [row for row in run.table if row.setting == setting]
        body = [
            (*_head(row), Entry(f"{row.promised_fpr * 100:g}\N{NO-BREAK SPACE}%"), VOID if row.void else entry(row.tpr),
             *(_value(values[row.setting, row.attack, row.promised_fpr, prior]) for prior in priors))
            for row in own
        ]  # fmt: skip
        groups.append(Group(setting if len(run.settings) > 1 else "", tuple(body)))
    by = "setting" if len(run.settings) > 1 else ""
    return Grid("attacks", "Attacks", columns, tuple(groups), by, caption=STAR_RULE)


def _prior_column(prior: float, spare: bool) -> Column:
    """Return a column of predictive values; a terminal shows it where it has places to ``spare``."""
    share = percent(prior, 0)
    told = f"members among those called, at a prior of {share}"
    return Column(f"PPV\n{share}", narrow="short" if spare else "nothing", explanation=told)


def _head(row: ScoreRow) -> tuple[Entry, Entry, Entry]:
    return Entry(row.attack), starred(row), Entry(small_p(row.auc_p_holm), tone=bold(row.above_chance))


def _value(row: ValueRow) -> Entry:
    if row.void:
        return VOID
    return Entry(DASH) if row.value.value is None else Entry(percent(row.value.value), _percents(row))


def _percents(row: ValueRow) -> str:
    low, high = row.value.ends
    return "" if low != low else f"[{percent(low)}, {percent(high)}]"


def threshold_grid(run: ScoreResult) -> Grid:
    """Return the rates at thresholds from elsewhere, beside those that the judged points' own ROC would give."""
    columns = (
        left("attack", merge=True),
        "FPR",
        "TPR",
        "found FPR",
        "threshold of\nother targets",
        "read off\nits own ROC",
    )
    body = [
        (
            row.attack,
            percent(row.promised_fpr),
            VOID if row.void else entry(row.tpr),
            replace(entry(row.found_fpr), tone=red(row.found_fpr_off)),
            number(row.other_targets_tpr),
            number(row.roc_tpr),
        )
        for row in run.table
    ]
    return grid("thresholds", "Where the threshold comes from", columns, body)


def decision_grid(run: ScoreResult) -> Grid:
    """Return the rates of the attacks' own decisions, and what they are worth."""
    own: dict[tuple[str, str], list[Entry]] = {(row.setting, row.attack): [] for row in run.decisions}
    for value in run.predictive_values:
        if value.promised_fpr is None:
            own[value.setting, value.attack].append(_value(value))
    priors = list(dict.fromkeys(row.prior for row in run.predictive_values))
    columns = (left("attack"), "TPR", "FPR", *(f"PPV {percent(prior, 0)}" for prior in priors))
    body = [(row.attack, entry(row.tpr), entry(row.fpr), *own[row.setting, row.attack]) for row in run.decisions]
    return grid("decisions", "Decisions by an attack’s own rule", columns, body)


def epsilon_grid(run: ScoreResult) -> Grid:
    """Return the lower bounds on ε."""
    columns = (left("attack", merge=True), "pairs", "guesses", "right", "ε at least")
    body = [(row.attack, row.pairs, row.guesses, row.right, f"{row.at_least:.2f}") for row in run.epsilons]
    delta = f"{run.epsilons[0].delta:g}" if run.epsilons else ""
    return grid("epsilon", f"Lower bound on ε at δ = {delta}", columns, body)


def all_grids(run: ScoreResult) -> list[Grid]:
    """Return all tables of a result."""
    return [
        main_grid(run),
        threshold_grid(run),
        *([decision_grid(run)] if run.decisions else []),
        *([epsilon_grid(run)] if run.epsilons else []),
        controls_grid(run.controls),
    ]


def terminal_grids(run: ScoreResult) -> list[Grid]:
    """Return the tables for a terminal of 80 columns."""
    return [main_grid(run), *([decision_grid(run)] if run.decisions else [])]
