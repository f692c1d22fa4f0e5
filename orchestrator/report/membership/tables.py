"""The tables of a membership run, as words and for a terminal: cells of a setting, all settings, fit, selections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from orchestrator.membership.result import promised
from orchestrator.report.by_setting import Grid
from orchestrator.report.membership.glossary import GROUPS, words
from orchestrator.report.membership.reading import MembershipRun
from orchestrator.report.reading import Row, percent
from orchestrator.report.rich_grid import as_rich
from orchestrator.report.tables import short

if TYPE_CHECKING:
    from rich.table import Table

UNDEFINED = "undefined"


def value(number: float | None) -> str:
    """Return a rate as ``.781``; "undefined" for 0/0."""
    return UNDEFINED if number is None else short(number)


def bounds(row: Row, name: str) -> str:
    """Return the interval of a cell's rate as ``[.701, .861]``, nothing where there is none."""
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return "" if low is None or high is None else f"[{short(low)}, {short(high)}]"


def rate(row: Row, name: str) -> str:
    """Return a cell's rate with its interval; "undefined" for 0/0."""
    return f"{value(row[name])} {bounds(row, name)}".rstrip()


def fresh(row: Row, *, interval: bool = False) -> str:
    """Return the false-positive rate on fresh models; a dash for attacks that promise no rate, and without models."""
    if promised(row) is None or not row["fresh_models"]:
        return "–"
    return rate(row, "fresh_fpr") if interval else value(row["fresh_fpr"])


def cell_grid(run: MembershipRun, setting: str, *, intervals: bool) -> Grid:
    """Return selection × attack of one setting; ``intervals``: on every rate, not on precision alone."""
    percents = f" [{percent(run.level, 0)}]"
    more = percents if intervals else ""
    head = ["selection", "attack", "|Q|", f"precision{percents}", f"coverage{more}", f"FPR{more}"]
    head += [f"fresh FPR{more}", *([f"AUC{more}"] if intervals else []), "queries"]
    body = []
    for name, rows in by_selection(run, setting).items():
        for row in rows:
            rates = [rate(row, field) if intervals else value(row[field]) for field in ("coverage", "fpr")]
            area = [rate(row, "auc")] if intervals else []
            counts = str(row["candidates"]), f"{row['queries_per_point']:g}"
            line = [words(name), words(row["attack"]), counts[0], rate(row, "precision"), *rates]
            body.append([*line, fresh(row, interval=intervals), *area, counts[1]])
    return Grid(f"{setting}: attack mode {run.mode(setting)}, {level_words(run.rows(setting))}", head, body)


def level_words(rows: Sequence[Row]) -> str:
    """Return β, and the level truly tested by ranks where an attack ranks: ``β = 0.05 (ranks attain .0446)``."""
    attained = next((row["attained"] for row in rows if row.get("attained") is not None), None)
    tested = "" if attained is None else f" (ranks attain {attained:.4f})".replace(" 0.", " .")
    return f"β = {rows[0]['beta']:g}{tested}"


def by_selection(run: MembershipRun, setting: str) -> dict[str, list[Row]]:
    """Return the cells of a setting by selection, each by access, weakest first; selections without cells left out."""
    rows = sorted(run.rows(setting), key=lambda row: run.attacks.index(row["attack"]))
    found = {name: [row for row in rows if row["selection"] == name] for name in run.selections}
    return {name: own for name, own in found.items() if own}


def overview_grid(run: MembershipRun) -> Grid | None:
    """Return setting × speaking attack under the main selection; None for a run of one setting."""
    if len(run.settings) < 2:
        return None
    head = ["setting", "mode", "attack", "|Q|", f"precision [{percent(run.level, 0)}]", "coverage", "FPR", "fresh FPR"]
    body = []
    for setting in run.settings:
        for attack in run.judges:
            if row := run.cell(setting, run.main_selection, attack):
                counts = [setting, run.mode(setting), words(attack), str(row["candidates"])]
                body.append([*counts, rate(row, "precision"), value(row["coverage"]), value(row["fpr"]), fresh(row)])
    return Grid(f"By setting, selection by {words(run.main_selection)}", head, body)


def fit_grid(run: MembershipRun) -> Grid:
    """Return training and test accuracy of every group of models, means over models, over-fitted ones flagged."""
    head = ["setting", "side", "models", "number", "train accuracy", "test accuracy", "gap (points)", ""]
    body = [
        [
            row["setting"],
            row["side"],
            GROUPS.get(row["group"], row["group"]),
            str(row["models"]),
            percent(row["train_accuracy"]),
            percent(row["test_accuracy"]),
            "–" if row["gap"] is None else f"{100 * row['gap']:.1f}",
            row["flag"] or "",
        ]
        for row in run.result["fit"]
    ]
    return Grid("Accuracy of the models, means over models", head, body)


def selection_grid(run: MembershipRun) -> Grid:
    """Return by which rule each selection was made, how many it chose and how many of those were asked."""
    head = ["setting", "selection", "rule", "threshold", "chosen", "of these asked with labels only"]
    body = [
        [
            row["setting"],
            words(row["selector"]),
            row["rule"],
            "–" if row["threshold"] is None else f"{row['threshold']:.4g}",
            str(row["chosen"]),
            str(row["asked"]),
        ]
        for row in run.result["selections"]
    ]
    return Grid("Selections", head, body)


def membership_tables(document: Mapping[str, Any]) -> list[Table]:
    """Return the tables of a result for a terminal of 100 columns: each setting of a few, else the main one and all."""
    run = MembershipRun(document)
    grid = overview_grid(run)
    tables = [] if grid is None else [as_rich(grid, texts=3)]
    tables += [as_rich(cell_grid(run, setting, intervals=False), texts=2) for setting in run.shown]
    tables[-1].caption = (
        f"{percent(run.level, 0)} intervals over targets, candidates and contrast models. Chance: precision .500. FPR: "
        f"on the targets' non-member pairs; fresh: on models that saw no candidate. undefined: 0/0."
    )
    return tables
