"""The main table of an Apollo run: attacks on each unlearning method, and the same as matrices for long runs."""

from __future__ import annotations

from collections.abc import Callable

from audits.statistics.null import expected_misses
from orchestrator.apollo.page.by_setting import area_entry
from orchestrator.apollo.page.promises import void_title
from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.result.rows import AttackRow
from orchestrator.apollo.result.words import words
from orchestrator.judgement.wording import DASH
from orchestrator.report.chance import STAR_RULE, starred
from orchestrator.report.grid import Column, Entry, Grid, grid, group, left, red
from orchestrator.report.numbers import VOID, bounds, entry, number, percent, small_p
from orchestrator.report.words import WHO, access_level


def main_grid(run: ApolloRun) -> Grid:
    """Return unlearner × attack of the main setting by access: AUC, TPR and found FPR, queries, test accuracy."""
    level = f"[{percent(run.result.level, 0)}]"
    columns = [left("unlearning", merge=True, narrow="short"), left("attack"), Column(f"AUC\n{level}")]
    columns.append(Column("p\n(Holm)", narrow="nothing"))
    for rate in run.rates:
        wide = rate != run.fpr
        columns += [
            Column(f"TPR at promised\nFPR {rate:g} {level}", narrow="nothing" if wide else "whole"),
            Column("found\nFPR" + (f" at {rate:g}" if wide else ""), narrow="nothing" if wide else "short"),
            Column("TPR on\nthe ROC" + (f" at {rate:g}" if wide else ""), narrow="nothing"),
        ]
    columns += [
        Column("queries", explanation="labels asked of the target per point"),
        Column("test", merge=True, explanation="test accuracy"),
    ]
    groups = [
        group(words(access), main_lines(run, access), WHO.get(access, "see the attack’s description."))
        for access in run.accesses
    ]
    title = void_title(run.result.headed("Attacks on unlearned models"), any(row.void for row in run.rows()))
    return Grid("attacks", title, tuple(columns), tuple(groups), "access", caption(run))


def main_lines(run: ApolloRun, access: str) -> list[list[object]]:
    """Return the lines of the main table at one access level, by unlearner."""
    rows = {(row.unlearner, row.attack, row.promised_fpr): row for rate in run.rates for row in run.rows(rate=rate)}
    lines: list[list[object]] = []
    for name in run.unlearners:
        accuracy = number(run.utility(name).test_accuracy)
        for row in (row for row in run.rows() if (row.access, row.unlearner) == (access, name)):
            each = [rows[name, row.attack, rate] for rate in run.rates if (name, row.attack, rate) in rows]
            over = "over points alone" if run.result.given else "bootstrap over targets"
            told = f"{over} {bounds(row.auc_bootstrap)}; pooled scores {number(row.auc_pooled)}"
            rates = [part for one in each for part in rate_entries(one)]
            asked = f"{round(row.queries_per_point, 1):g}"
            lines.append(
                [
                    unlearner(run, name),
                    words(row.attack),
                    starred(row, told),
                    small_p(row.auc_p_holm),
                    *rates,
                    asked,
                    accuracy,
                ]
            )
    return lines


def rate_entries(row: AttackRow) -> list[Entry]:
    """Return TPR and found FPR at the promised rate of a row, red where that is not kept, and the TPR on the ROC."""
    return [
        VOID if row.void else entry(row.tpr, tooltip=f"binomial interval {bounds(row.tpr_exact)}"),
        entry(
            row.found_fpr,
            tone=red(row.found_fpr_off),
            tooltip=f"binomial interval {bounds(row.found_fpr_exact)}",
        ),
        Entry(number(row.roc_tpr)),
    ]


def unlearner(run: ApolloRun, name: str) -> Entry:
    """Return an unlearner's name; what it is a control of, or that the given model was judged by it, beside it."""
    text, _, control = run.called(name).partition(" (")
    if run.result.given and not control:
        return Entry("given model", f"(by {text})")
    return Entry(text, f"({control}" if control else "")


def caption(run: ApolloRun) -> str:
    """Return the lines under the table: how to read it and how much luck to expect."""
    rows = run.rows()
    flagged = [
        f"{words(name)}: {flag}" + ("" if run.result.given else f" ({count} of {use.targets} targets)")
        for name in run.unlearners
        for use in [run.utility(name)]
        for flag, count in use.flags.items()
    ]
    lines = [
        f"{counts(run)} {STAR_RULE}.",
        f"Of {len(rows)} AUC intervals ({percent(run.result.level, 0)} each), about "
        f"{expected_misses(len(rows), run.result.level):.1f} are expected to miss the truth by chance.",
        *flagged,
    ]
    return "\n".join(lines)


def counts(run: ApolloRun) -> str:
    """Return how many targets and points the main table is about."""
    first = run.rows()[0]
    whose = "One given model" if run.result.given else f"{first.targets} targets"
    return f"{whose}, {first.forget} forgotten and {first.unseen} unseen points in all."


def matrix_grids(run: ApolloRun) -> list[Grid]:
    """Return attacks × unlearners for runs of many rows: AUC, then TPR and found FPR at each promised rate."""
    title = run.result.headed(f"AUC [{percent(run.result.level, 0)}], * where beyond chance by p (Holm) and interval")
    found = [matrix(run, "auc", title, run.fpr, area_entry)]
    for rate in run.rates:
        title = f"TPR / found FPR at a promised FPR of {rate:g}"
        title = void_title(run.result.headed(title), any(row.void for row in run.rows(rate=rate)))
        found.append(matrix(run, f"rates-{rate:g}", title, rate, both_rates))
    return found


def both_rates(row: AttackRow) -> Entry:
    """Return ``.152 / .049``, or ``void / .220``."""
    tpr = VOID.text if row.void else number(row.tpr.value)
    return Entry(f"{tpr} / {number(row.found_fpr.value)}", tone=red(row.found_fpr_off))


def matrix(run: ApolloRun, name: str, title: str, rate: float, shown: Callable[[AttackRow], Entry]) -> Grid:
    """Return one line an attack, by access and in the order of the plan, and one column an unlearner."""
    rows = run.rows(rate=rate)
    entries = {(row.attack, row.unlearner): shown(row) for row in rows}
    attacks = {row.attack: row for row in sorted(rows, key=lambda row: access_level(row.access))}
    body = [
        [
            words(row.access).lower(),
            words(attack),
            f"{row.queries_per_point:g}",
            *(entries.get((attack, name), DASH) for name in run.unlearners),
        ]
        for attack, row in attacks.items()
    ]
    return grid(name, title, [left("access"), left("attack"), "queries", *map(words, run.unlearners)], body)
