"""What a finished run says on the terminal: the main table, the settings of a sweep, warnings, and where things are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from orchestrator.console import Terminal

Row = Mapping[str, Any]


def show_result(terminal: Terminal, document: Mapping[str, Any], out: Path) -> None:
    """Print a result (as in result.json): tables, expected misses, warnings, and where the report is."""
    settings = list(dict.fromkeys(row["setting"] for row in document["table"]))
    if settings:
        terminal.table(main_table(document, settings[0]))
    if len(settings) > 1:
        terminal.table(settings_table(document["table"], settings))
    for text in document["warnings"]:
        terminal.line(f"warning: {text}")
    terminal.line(f"report: {out / 'report.html'}")


def main_table(document: Mapping[str, Any], setting: str) -> Table:
    """Return the table of one setting: unlearner × attack with AUC, TPR and found FPR, intervals, queries, utility."""
    rows = [row for row in document["table"] if row["setting"] == setting]
    promised = ", ".join(f"{rate:.0%}" for rate in dict.fromkeys(row["promised_fpr"] for row in rows))
    table = Table(title=f"{document['name']}, setting {setting}: promised FPR {promised}", title_justify="left")
    for name in ("unlearner", "attack", "sees"):
        table.add_column(name)
    for name in ("AUC", "TPR", "found FPR", "queries/point", "test acc."):
        table.add_column(name, justify="right")
    former = None
    for row in rows:
        new = row["unlearner"] != former
        if new and former is not None:
            table.add_section()
        former = row["unlearner"]
        table.add_row(
            row["unlearner"] if new else "",
            row["attack"],
            row["access"],
            with_interval(row, "auc") + ("" if row["above_chance"] else "  ≈ chance"),
            with_interval(row, "tpr"),
            with_interval(row, "found_fpr"),
            f"{row['queries_per_point']:g}",
            accuracy(document["utility"], row["unlearner"]) if new else "",
        )
    return table


def settings_table(rows: Sequence[Row], settings: Sequence[str]) -> Table:
    """Return a sweep's settings × unlearners with the AUC of the first attack of the table (Apollo, as a rule)."""
    attack = rows[0]["attack"]
    unlearners = list(dict.fromkeys(row["unlearner"] for row in rows))
    table = Table(title=f"AUC of {attack} by setting", title_justify="left")
    table.add_column("setting")
    for name in unlearners:
        table.add_column(name, justify="right")
    cells = {(row["setting"], row["unlearner"]): row for row in reversed(rows) if row["attack"] == attack}
    for setting in settings:
        found = [cells.get((setting, name)) for name in unlearners]
        table.add_row(setting, *(with_interval(row, "auc") if row else "" for row in found))
    return table


def with_interval(row: Row, metric: str) -> str:
    """Return ``.703 [.668, .738]``, or a dash for what was not measured."""
    value, low, high = row[metric], row[f"{metric}_low"], row[f"{metric}_high"]
    if value is None or math.isnan(value):
        return "–"
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def accuracy(utility: Sequence[Row], unlearner: str) -> str:
    """Return the mean test accuracy over targets, with the flags that were raised."""
    rows = [row for row in utility if row["unlearner"] == unlearner]
    if not rows:
        return ""
    flags = sorted({row["flag"] for row in rows if row["flag"]})
    return f"{sum(row['test_accuracy'] for row in rows) / len(rows):.3f}{''.join(f' ({flag})' for flag in flags)}"
