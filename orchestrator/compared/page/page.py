"""The page of a comparison, and its table for a terminal."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure

from orchestrator.compared.rows import SHADOWS_TOO, CompareResult, DifferenceRow, PairRow
from orchestrator.judgement.wording import DASH
from orchestrator.judgement.wording import lines as verdict_lines
from orchestrator.report.grid import Column, Entry, Grid, Group, bold, left
from orchestrator.report.numbers import entry, number, percent, small_p
from orchestrator.report.sentence import Sentence
from orchestrator.report.style import INK, PAPER, SERIES
from orchestrator.report.writing import draw, write_page

MOST_LINES = 40
GLOSSARY = {
    "difference": "The second run minus the first: above 0, the attack does better on the second.",
    "p (Holm)": "How often runs that do not differ would be as far apart, corrected over all differences that are "
    "tested: those whose interval lets shadow models vary, and whose scores are not identical by construction.",
    "interval over": "What the interval lets vary. Shadows held fixed: the same shadow models are behind all scores of "
    "a run, or there is one target, so that other shadow models may give another difference, which is not called "
    "statistically significant.",
    "paired": "A target that both runs queried about the same points, with the same members, counts once, with its own "
    "difference, so whatever makes it easy or hard in both cancels. The same holds for a point. What is not shared "
    "adds up, so unpaired intervals are wider.",
    "auc": "Mean over targets of the chance that a member scores higher than a non-member.",
    "tpr, fpr": "Shares of members and of non-members that are called members, at a threshold fixed for a nominal "
    "false-positive rate, or by the attack’s own rule.",
    "precision": "Members among those that are called members.",
}


def main_grid(run: CompareResult) -> Grid:
    """Return all differences, grouped by the runs that they are between."""
    several = len({row.setting for row in run.table}) > 1
    columns = (
        left("attack"),
        left("metric"),
        Column("first", narrow="nothing"),
        Column("second", narrow="nothing"),
        Column("difference"),
        Column("p (Holm)"),
        Column("interval over", "left", narrow="nothing"),
    )
    groups = []
    for pair in run.pairs:
        own = [row for row in run.table if (row.first, row.second) == (pair.first, pair.second)]
        body = tuple(_line(row, several) for row in own)
        groups.append(Group(f"{pair.second} − {pair.first}", body, pair.reason))
    held = dict.fromkeys(row.over for row in run.table if row.over != SHADOWS_TOO and not row.identical)
    caption = f"† over {' or '.join(held)}: never called statistically significant" if held else ""
    return Grid("differences", "Differences", columns, tuple(groups), "runs", caption=caption)


def _line(row: DifferenceRow, several: bool) -> tuple[Entry, ...]:
    mark = "*" if row.differs else "" if row.over == SHADOWS_TOO or row.identical else "†"
    p = DASH if row.p_holm is None else small_p(row.p_holm)
    return (
        Entry(f"{row.setting}/{row.both}" if several else row.both),
        Entry(row.name),
        Entry(number(row.first_value)),
        Entry(number(row.second_value)),
        entry(row.difference, signed=True, mark=mark),
        Entry(p, tone=bold(row.differs)),
        Entry("identical values" if row.identical else row.over),
    )


def verdict(run: CompareResult) -> list[Sentence]:
    """Return what is paired, and what intervals cover."""
    pairs = [Sentence("plain", f"{pair.second} and {pair.first}", pair.reason) for pair in run.pairs]
    return [*pairs, Sentence("plain", "Intervals", run.covers)]


def differences(run: CompareResult) -> Figure:
    """Draw the differences with their intervals, at most ``MOST_LINES``; filled: significant after correction."""
    rows = run.table[:MOST_LINES]
    figure = Figure(figsize=(7.6, 0.27 * len(rows) + 1.0), layout="constrained")
    axes = figure.subplots()
    places = list(dict.fromkeys((row.first, row.second) for row in run.table))
    several = len({row.setting for row in run.table}) > 1
    for height, row in enumerate(rows):
        colour = SERIES[places.index((row.first, row.second)) % len(SERIES)]
        axes.plot(row.difference.ends, [height] * 2, color=colour, linewidth=2.0, solid_capstyle="butt")
        face = colour if row.differs else PAPER
        axes.plot(float(row.difference), height, "o", color=colour, markerfacecolor=face, markersize=5.5)
    axes.axvline(0.0, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
    names = [f"{f'{row.setting}/' if several else ''}{row.both}, {row.name}" for row in rows]
    if len(places) > 1:
        names = [f"{name} ({row.second} − {row.first})" for name, row in zip(names, rows, strict=True)]
    axes.set_yticks(range(len(rows)), names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(axis="y", visible=False)
    what = "second − first" if len(places) > 1 else f"{run.table[0].second} − {run.table[0].first}"
    axes.set_xlabel(f"{what}, with {percent(run.level, 0)} interval")
    return figure


def write(run: CompareResult, out: Path) -> Path:
    """Write figures and page into ``out``; return the page's path."""
    return write_page(
        out,
        "orchestrator.compared.page",
        run,
        draw({"differences": lambda: differences(run)}, out / "figures"),
        answer=run.verdict,
        verdict=verdict(run),
        glossary=GLOSSARY,
        table_of_all=main_grid(run),
        opening=opening_lines(run),
        level=percent(run.level, 0),
        drawn_lines=min(MOST_LINES, len(run.table)),
    )


def opening_lines(run: CompareResult) -> list[str]:
    """Return what is compared with nothing, and what under another name or method: what to read before all numbers."""
    named = [f"Compared with each other: {text}." for pair in run.pairs for text in pair.matched]
    return list(dict.fromkeys([*(text for pair in run.pairs for text in pair.left_out), *named]))


def closing_lines(run: CompareResult) -> list[str]:
    """Return the lines below the table on a terminal."""
    said = verdict_lines(run.verdict) if run.verdict else []
    return [*map(pair_line, run.pairs), run.covers, *said]


def pair_line(pair: PairRow) -> str:
    """Return what is paired between two runs."""
    return f"{pair.second} − {pair.first}: {pair.reason}"
