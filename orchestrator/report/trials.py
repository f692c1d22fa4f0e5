"""The trials of a search, ranked: whole ones by their value, then those that were stopped, by how far they came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from audits.errors import how_many
from orchestrator.judgement.wording import DASH
from orchestrator.report.grid import Entry, Grid, bold, grid, left
from orchestrator.report.numbers import number

Search = Mapping[str, Any]
"""The field ``search`` of result.json."""


def trial_grid(search: Search) -> Grid:
    """Return the table of all different trials; the best one, or those of the Pareto front, in bold."""
    ranked = sorted(different(search), key=lambda row: place(row, search["mode"]))
    best = set(search["front"]) or {row["number"] for row in ranked[:1] if row["state"] == "done"}
    total = max(search["rungs"])
    body = [
        [
            Entry(str(row["number"])),
            Entry(row["setting"], tone=bold(row["number"] in best)),
            *(Entry(number(value), tone=bold(row["number"] in best)) for value in shown(row, search)),
            Entry(row["state"] or DASH),
            Entry(f"{row['parts']} of {total}"),
        ]
        for row in ranked
    ]
    names = [f"{name} ({mode})" for name, mode in zip(search["metric"], search["mode"], strict=True)]
    title = f"Trials of the search ({search['algorithm']}), ranked; in bold " + (
        "those of the Pareto front" if search["front"] else "the best"
    )
    return grid("trials", title, ["trial", left("setting"), *names, left("state"), "parts of\nthe targets"], body)


def different(search: Search) -> list[Mapping[str, Any]]:
    """Return the trials without those that repeat an earlier one, which are no further attempts."""
    return [row for row in search["trials"] if row["repeats"] is None]


def place(row: Mapping[str, Any], mode: Sequence[str]) -> tuple[int, int, float, int]:
    """Return where a trial ranks: whole before stopped, more parts before fewer, then by its first value."""
    known = [value for value in row["values"][:1] if value is not None]
    cost = float("inf") if not known else known[0] if mode[0] == "min" else -known[0]
    return (row["state"] != "done", -row["parts"], cost, row["number"])


def shown(row: Mapping[str, Any], search: Search) -> Sequence[float | None]:
    """Return a trial's values, None for those that it does not have."""
    return row["values"] or [None] * len(search["metric"])


def remark(search: Search) -> str:
    """Return the sentence that a reader of the table must know."""
    ended = " The search ran out of time before its last trial." if search["out_of_time"] else ""
    tried = different(search)
    if again := len(search["trials"]) - len(tried):
        ended += f" {how_many(again, 'suggestion')} of the searcher repeated a trial; no trial is counted twice."
    if len(tried) == 1:
        return f"The search has one trial: nothing was picked.{ended}"
    whole = sum(row["state"] == "done" for row in tried)
    return (
        f"The best of {len(tried)} trials ({whole} on all targets) was picked on the targets that it is "
        f"quoted for, so its value is too good. Stopped trials were judged on some of the targets only.{ended}"
    )
