"""What scores predict, as tables: correlations with what attacks find, gains over controls, AUC by bin."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from orchestrator.report.by_setting import Grid
from orchestrator.report.disclosure.glossary import RULES, ranking_words, words
from orchestrator.report.disclosure.numbers import DASH, ENDS, change, estimate, p_words
from orchestrator.report.disclosure.reading import DisclosureRun
from orchestrator.report.reading import Row, percent

BESIDE = "loss_log"
"""The control that the score that speaks is set beside: fixed by name, whatever they foretell."""


def correlation_grid(run: DisclosureRun, setting: str) -> Grid | None:
    """Return score × outcome: Spearman correlation with its interval; None where nothing was measured."""
    rows = run.rows("correlations", setting)
    outcomes = list(dict.fromkeys(row["outcome"] for row in rows))
    found = {(row["score"], row["outcome"]): row for row in rows}
    controls = {row["score"] for row in rows if row["control"]}
    body = [
        [
            ranking_words(score),
            "control" if score in controls else "",
            *(estimate(found.get((score, outcome)), "spearman", ends=ENDS) for outcome in outcomes),
        ]
        for score in run.scores("correlations", setting)
    ]
    head = ["score", "", *(f"{words(outcome)} [{percent(run.level, 0)}]" for outcome in outcomes)]
    return Grid(f"{setting}: rank correlation of each score with what attacks find", head, body) if body else None


def setting_grid(run: DisclosureRun) -> Grid | None:
    """Return setting × outcome: Spearman of GNQ, and its gain over the summed loss; None where all say the same."""
    outcomes = list(dict.fromkeys(row["outcome"] for row in run.result["correlations"]))
    body = []
    for setting in run.settings:
        cells = []
        for outcome in outcomes:
            place = {"score": run.speaker, "outcome": outcome}
            found = matching(run.rows("correlations", setting), place)
            gained = matching(run.rows("gains", setting), {**place, "control": BESIDE})
            cells += [estimate(found, "spearman", ends=ENDS), change(gained) if gained else DASH]
        body.append([setting, *cells])
    level = percent(run.level, 0)
    head = ["setting", *(part for name in outcomes for part in (f"{words(name)} [{level}]", "minus loss"))]
    differ = len({tuple(row[1:]) for row in body}) > 1
    return Grid("GNQ with what attacks find, by setting", head, body) if outcomes and differ else None


def matching(rows: Iterable[Row], place: Mapping[str, str]) -> Row | None:
    """Return the first row that has all values of ``place``."""
    return next((row for row in rows if all(row[name] == value for name, value in place.items())), None)


def gain_grid(run: DisclosureRun, setting: str) -> Grid | None:
    """Return how much better each score of GNQ predicts than each control, paired by pool; None without any."""
    body = [
        [ranking_words(row["score"]), ranking_words(row["control"]), words(row["outcome"]), change(row), p_words(row)]
        for score in run.scores("gains", setting)
        for row in run.rows("gains", setting)
        if row["score"] == score
    ]
    head = ["score", "control", "outcome", f"difference [{percent(run.level, 0)}]", "p (Holm)"]
    return Grid(f"{setting}: correlation of GNQ minus that of controls, paired by pool", head, body) if body else None


def bin_grid(run: DisclosureRun, setting: str) -> Grid | None:
    """Return AUC by bin of each score and rule, least exposed first; None where nothing was measured."""
    rows = run.rows("bins", setting)
    if not rows:
        return None
    bins = sorted({row["bin"] for row in rows})
    found = {(row["score"], row["rule"], row["bin"]): row for row in rows}
    body = [
        [
            ranking_words(score),
            RULES[rule],
            *(estimate(found.get((score, rule, place)), "auc", ends=ENDS) for place in bins),
        ]
        for score in run.scores("bins", setting)
        for rule in RULES
        if any((row["score"], row["rule"]) == (score, rule) for row in rows)
    ]
    title = (
        f"{setting}: AUC of {words('lira')} by bin of a score, bin 1 least exposed, about {rows[0]['points']:g} points"
    )
    return Grid(title, ["score", "non-members", *map(str, bins)], body)
