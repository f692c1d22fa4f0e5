"""The main table for a terminal: unlearner × attack with AUC, TPR, found FPR, utility and queries in 100 columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.evaluation.null import expected_misses
from orchestrator.report.glossary import words
from orchestrator.report.reading import Row, Run

if TYPE_CHECKING:
    from rich.table import Table


def short(value: float) -> str:
    """Return a number in [0, 1] with three digits and no leading zero, as tables of the field print it."""
    return f"{value:.3f}".removeprefix("0")


def with_interval(row: Row, name: str) -> str:
    """Return ``value [low, high]`` of a table row."""
    return f"{short(row[name])} [{short(row[f'{name}_low'])}, {short(row[f'{name}_high'])}]"


def main_table(result: Mapping[str, Any]) -> Table:
    """Return the rich table of a result's main setting; ``*`` marks AUCs above chance after Holm's correction."""
    from rich import box
    from rich.table import Table

    run = Run(dict(result), scores={})
    percent = f"{run.level:.0%}"
    table = Table(
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), caption=caption(run), caption_justify="left", caption_style=""
    )
    for heading in ("unlearner", "attack"):
        table.add_column(heading, no_wrap=True)
    for heading in (f"AUC [{percent}]", "", f"TPR@{run.fpr * 100:g}% [{percent}]", "FPR", "queries", "test"):
        table.add_column(heading, justify="right", no_wrap=True)
    for access in run.accesses:
        table.add_row(f"[bold]{words(access)}[/bold]", end_section=True)
        for unlearner in run.unlearners:
            add_rows(table, run, access, unlearner)
    return table


def add_rows(table: Table, run: Run, access: str, unlearner: str) -> None:
    """Add the rows of one unlearning method at one access level."""
    rows = [row for row in run.rows() if (row["access"], row["unlearner"]) == (access, unlearner)]
    accuracy = run.utility(unlearner)["test_accuracy"]
    for index, row in enumerate(rows):
        table.add_row(
            words(unlearner).replace(" (control)", "") if index == 0 else "",
            words(row["attack"]),
            with_interval(row, "auc"),
            "*" if row["above_chance"] else "",
            with_interval(row, "tpr"),
            short(row["found_fpr"]),
            f"{row['queries_per_point']:.0f}",
            short(accuracy) if index == 0 and not np.isnan(accuracy) else "",
            end_section=index == len(rows) - 1,
        )


def exposure_line(result: Mapping[str, Any]) -> str:
    """Return one line: how many deleted points are still detectable one by one, by method; empty without a list."""
    exposed = result.get("exposed")
    if not exposed:
        return ""
    names = dict.fromkeys(row["unlearner"] for row in result["table"])
    found = [point["unlearner"] for point in exposed["points"]]
    counts = ", ".join(f"{words(name)} {found.count(name)}" for name in names)
    head = f"deleted points still detectable ({words(exposed['attack'])}, false discovery rate {exposed['fdr']:g})"
    return f"{head}: {counts}"


def caption(run: Run) -> str:
    """Return the lines under the table: how to read it and how much luck to expect."""
    rows = run.rows()
    first = rows[0]
    flagged = [
        f"{words(name)}: {flag} ({count} of {use['targets']} targets)"
        for name in run.unlearners
        for use in [run.utility(name)]
        for flag, count in use["flags"].items()
    ]
    lines = [
        f"{first['targets']} targets, {first['forget']} forgotten + {first['unseen']} unseen points. "
        "* above chance after Holm's correction.",
        f"Of {len(rows)} AUC intervals about {expected_misses(len(rows), run.level):.1f} miss the truth by luck. "
        "FPR: found; test: accuracy.",
        *flagged,
    ]
    return "\n".join(lines)


def sweep_table(result: Mapping[str, Any], attack: str) -> Table | None:
    """Return AUC of one attack by setting × unlearner, or None for a run with a single setting."""
    from rich import box
    from rich.table import Table

    run = Run(dict(result), scores={})
    if len(result["settings"]) < 2:
        return None
    table = Table(
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), title=f"{words(attack)}: AUC by setting", title_justify="left"
    )
    table.add_column("setting", no_wrap=True)
    for unlearner in run.unlearners:
        table.add_column(words(unlearner).replace(" (control)", ""), justify="right")
    for entry in result["settings"]:
        rows = {row["unlearner"]: row for row in run.rows(entry["setting"]) if row["attack"] == attack}
        cells = [
            ("* " if rows[name]["above_chance"] else "") + short(rows[name]["auc"]) if name in rows else "–"
            for name in run.unlearners
        ]
        table.add_row(str(entry["setting"]), *cells)
    return table
