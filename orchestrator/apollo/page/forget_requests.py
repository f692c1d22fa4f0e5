"""Forget requests and the uniqueness of their gradients: what was known before anything was unlearned."""

from __future__ import annotations

import dataclasses

from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.result.rows import RequestRow
from orchestrator.apollo.result.words import words
from orchestrator.report.grid import Grid, grid, left
from orchestrator.report.numbers import entry, percent
from orchestrator.report.words import ranking_words


def all_foretold(run: ApolloRun) -> list[Grid]:
    """Return the table of ``foretold`` for each setting with watched targets; titles name it if there are more."""
    grids = [(name, foretold(run, name)) for name in dict.fromkeys(row.setting for row in run.result.table)]
    found = [(name, grid) for name, grid in grids if grid]
    return [
        dataclasses.replace(grid, name=f"{grid.name}-{name}", title=f"{name}: {grid.title}") if len(found) > 1 else grid
        for name, grid in found
    ]


def foretold(run: ApolloRun, setting: str | None = None) -> Grid | None:
    """Return unlearner × attack by score: rank correlation over the forget requests of a setting, else the main one.

    None where targets were not watched.
    """
    asked = run.main_setting if setting is None else setting
    rows = [row for row in run.result.disclosure_correlations if row.setting == asked]
    if not rows:
        return None
    found = {(row.unlearner, row.attack, row.score): row.spearman for row in rows}
    scores = list(dict.fromkeys(row.score for row in rows))
    controls = {row.score for row in rows if row.control}
    head = [ranking_words(score) + (" (control)" if score in controls else "") for score in scores]
    body = [
        [words(name), words(attack), *(entry(found.get((name, attack, score))) for score in scores)]
        for name in run.unlearners
        for attack in run.attacks
    ]
    title = f"rank correlation with the attack over forget requests [{percent(run.result.level, 0)}]"
    return grid("forget-requests", title, [left("unlearning"), left("attack"), *head], body)


def requests_by_point(run: ApolloRun) -> dict[tuple[int, int], RequestRow]:
    """Return what is known of each forget request of the main setting by (target, point id)."""
    return {(row.target, row.point_id): row for row in run.result.disclosure}


def request_words(run: ApolloRun) -> str:
    """Return in words how many requests there are, how many on top, and how many at the bound; "" without any."""
    rows = run.result.disclosure
    if not rows:
        return ""
    full, top = sum(row.bits >= 1.0 for row in rows), sum(row.percentile >= 0.9 for row in rows)
    return (
        f"Of {len(rows)} forget requests {top} are in the top tenth of their target’s training points. "
        f"The bound of one bit is reached by {full} and does not tell these apart."
    )
