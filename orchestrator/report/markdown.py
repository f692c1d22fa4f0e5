"""The tables of a run as Markdown, for documents: ``orch report RUN --markdown``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from orchestrator.report.by_setting import Grid, found_points, grids
from orchestrator.report.forget_requests import all_foretold
from orchestrator.report.glossary import access_level, words
from orchestrator.report.markdown_table import auc_cell, p_value, span, table
from orchestrator.report.reading import Run
from orchestrator.report.tables import short
from orchestrator.report.verdict import search_gains

Row = dict[str, Any]
MOST_ROWS = 60


def markdown(run: Run) -> str:
    """Return the run's tables as Markdown: main table, AUC by setting, single points, uniqueness, gains, utility."""
    rows = run.result["table"]
    first = run.main_setting
    settings = list(dict.fromkeys(row["setting"] for row in rows))
    main = [row for row in rows if row["setting"] == first]
    parts = [
        *(matrices(main) if len(main) > MOST_ROWS else by_access(main)),
        settings_table(rows, settings) if len(settings) > 1 else "",
        *(as_markdown(grid) for grid in grids(run)),
        discoveries_table(run),
        *(as_markdown(grid) for grid in all_foretold(run)),
        three_way_table([row for row in run.result.get("three_way") or [] if row["setting"] == first]),
        gains_table(run),
        paper_rule_table(run.result.get("paper_rule") or []),
        utility_table(run),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def as_markdown(grid: Grid) -> str:
    """Return a table with its title in bold."""
    return f"**{grid.title}**\n\n{table(grid.head, grid.rows)}"


def by_access(rows: Sequence[Row]) -> list[str]:
    """Return one main table for each access level."""
    accesses = sorted(dict.fromkeys(row["access"] for row in rows), key=access_level)
    return [f"**{words(name)}**\n\n{main_table([row for row in rows if row['access'] == name])}" for name in accesses]


def matrices(rows: Sequence[Row]) -> list[str]:
    """Return attacks × unlearners for runs of many rows: AUC, then TPR and found FPR at each promised rate."""
    rates = list(dict.fromkeys(row["promised_fpr"] for row in rows))
    first = [row for row in rows if row["promised_fpr"] == rates[0]]
    found = [f"**AUC [95 %]**, * where above chance after Holm\n\n{matrix(first, auc_cell)}"]
    for rate in rates:
        own = [row for row in rows if row["promised_fpr"] == rate]
        found.append(f"**TPR / found FPR at a promised FPR of {rate:g}**\n\n{matrix(own, rates_cell)}")
    return found


def matrix(rows: Sequence[Row], cell: Callable[[Row], str]) -> str:
    """Return one line an attack, by access and in the order of the plan, and one column an unlearner."""
    unlearners = list(dict.fromkeys(row["unlearner"] for row in rows))
    cells = {(row["attack"], row["unlearner"]): row for row in rows}
    attacks = {row["attack"]: row for row in rows}
    ordered = sorted(attacks, key=lambda name: access_level(attacks[name]["access"]))
    head = ["access", "attack", "queries", *(words(name) for name in unlearners)]
    body = []
    for attack in ordered:
        row = attacks[attack]
        shown = [cell(cells[attack, name]) if (attack, name) in cells else "–" for name in unlearners]
        body.append([words(row["access"]).lower(), words(attack), f"{row['queries_per_point']:g}", *shown])
    return table(head, body)


def rates_cell(row: Row) -> str:
    """Return ``.152 / .049``."""
    return f"{short(row['tpr'])} / {short(row['found_fpr'])}"


def main_table(rows: Sequence[Row]) -> str:
    """Return unlearner × attack: AUC, p after Holm, TPR and found FPR with intervals, label queries."""
    head = [
        "unlearner",
        "attack",
        "AUC [95 %]",
        "p (Holm)",
        "TPR [95 %]",
        "promised FPR",
        "found FPR [95 %]",
        "queries",
    ]
    body = [
        [
            words(row["unlearner"]),
            words(row["attack"]),
            span(row, "auc"),
            p_value(row["auc_p_holm"]),
            span(row, "tpr"),
            f"{row['promised_fpr']:g}",
            span(row, "found_fpr"),
            f"{row['queries_per_point']:g}",
        ]
        for row in rows
    ]
    return table(head, body)


def settings_table(rows: Sequence[Row], settings: Sequence[str]) -> str:
    """Return setting × unlearner: AUC of Apollo and of U-LiRA, the least p of retrain after Holm."""
    unlearners = list(dict.fromkeys(row["unlearner"] for row in rows))
    cells = {(row["setting"], row["unlearner"], row["attack"]): row for row in rows}
    head = ["setting", *(f"{words(name)}: Apollo / U-LiRA" for name in unlearners), "least p of retrain (Holm)"]
    body = []
    for setting in settings:
        pairs = [[cells.get((setting, name, attack)) for attack in ("apollo", "u_lira")] for name in unlearners]
        retrain = [row for row in rows if row["setting"] == setting and row["unlearner"] == "retrain"]
        least = p_value(min(row["auc_p_holm"] for row in retrain)) if retrain else "–"
        shown = [" / ".join(f"{row['auc']:.3f}" if row else "–" for row in pair) for pair in pairs]
        body.append([setting, *shown, least])
    return table(head, body)


def discoveries_table(run: Run) -> str:
    """Return the single points that false discovery rate control finds, or that there are none; "" if not asked."""
    rows = run.result.get("discoveries") or []
    rates = ", ".join(f"{rate:g}" for rate in dict.fromkeys(row["claimed_fdr"] for row in rows))
    if rows and not any(row["discoveries"] for row in rows):
        return f"No point is found at a promised false discovery rate of {rates}, by any attack."
    return "\n\n".join(as_markdown(grid) for grid in found_points(run))


def three_way_table(rows: Sequence[Row]) -> str:
    """Return balanced accuracy over forgotten, retained and unseen points and the AUC of every pair of groups."""
    if not rows:
        return ""
    pairs = [" / ".join(pair["groups"]) for pair in rows[0]["pairs"]]
    head = ["unlearner", "attack", "balanced accuracy [95 %]", *(f"{pair} AUC [95 %]" for pair in pairs)]
    body = [
        [
            words(row["unlearner"]),
            words(row["attack"]),
            span(row, "balanced_accuracy"),
            *(span(pair, "auc") for pair in row["pairs"]),
        ]
        for row in rows
    ]
    return table(head, body)


def gains_table(run: Run) -> str:
    """Return the pairs of attacks that are compared: mean AUC difference over targets, t interval, p."""
    gains = search_gains(run)
    head = ["unlearner", "attack", "minus", "difference of AUC [95 %]", "p (paired t, uncorrected)"]
    body = [
        [
            words(gain.unlearner),
            words(gain.attack),
            words(gain.reference),
            f"{gain.difference.mean:+.3f} [{gain.difference.low:+.3f}, {gain.difference.high:+.3f}]",
            p_value(gain.difference.p),
        ]
        for gain in gains
    ]
    return table(head, body) if gains else ""


def paper_rule_table(rows: Sequence[Row]) -> str:
    """Return the paper's best threshold on the judged points beside what permutations reach by the same procedure."""
    head = ["unlearner", "best balanced accuracy over τ", "95 % of permutations", "p"]
    body = [
        [
            words(row["unlearner"]),
            f"{row['best']:.3f}",
            f"{row['null_low']:.3f} to {row['null_high']:.3f}",
            p_value(row["p"]),
        ]
        for row in rows
    ]
    return table(head, body) if rows else ""


def utility_table(run: Run) -> str:
    """Return the means over targets of accuracies, distance and seconds."""
    head = ["unlearner", "retain acc.", "forget acc.", "test acc.", "‖θ_u − θ‖", "seconds", "flags"]
    body = []
    for name in dict.fromkeys(row["unlearner"] for row in run.result["utility"]):
        own = [row for row in run.result["utility"] if row["unlearner"] == name]
        fields = ("retain_accuracy", "forget_accuracy", "test_accuracy", "distance", "seconds")
        means = [f"{sum(row[field] for row in own) / len(own):.3f}" for field in fields]
        flags = [row["flag"] for row in own if row["flag"]]
        said = ", ".join(f"{flag} ({flags.count(flag)} of {len(own)})" for flag in dict.fromkeys(flags))
        body.append([words(name), *means, said])
    return table(head, body)
