"""Forget requests and the uniqueness of their gradients: what was known before anything was unlearned."""

from __future__ import annotations

import dataclasses
from typing import Any

from orchestrator.report.by_setting import Grid
from orchestrator.report.disclosure.glossary import ranking_words
from orchestrator.report.disclosure.numbers import ENDS, estimate
from orchestrator.report.glossary import words
from orchestrator.report.reading import Row, Run, percent


def all_foretold(run: Run) -> list[Grid]:
    """Return the table of ``foretold`` for each setting with watched targets; titles name it if there are more."""
    grids = [(name, foretold(run, name)) for name in dict.fromkeys(row["setting"] for row in run.result["table"])]
    found = [(name, grid) for name, grid in grids if grid]
    return [
        dataclasses.replace(grid, title=f"{name}: {grid.title}") if len(found) > 1 else grid for name, grid in found
    ]


def foretold(run: Run, setting: str | None = None) -> Grid | None:
    """Return unlearner × attack by score: rank correlation over the forget requests of a setting, else the main one.

    None where targets were not watched.
    """
    asked = run.main_setting if setting is None else setting
    rows = [row for row in run.result.get("disclosure_correlations") or [] if row["setting"] == asked]
    if not rows:
        return None
    found = {(row["unlearner"], row["attack"], row["score"]): row for row in rows}
    scores = list(dict.fromkeys(row["score"] for row in rows))
    controls = {row["score"] for row in rows if row["control"]}
    head = [ranking_words(score) + (" (control)" if score in controls else "") for score in scores]
    body = [
        [
            words(name),
            words(attack),
            *(estimate(found.get((name, attack, score)), "spearman", ends=ENDS) for score in scores),
        ]
        for name in run.unlearners
        for attack in run.attacks
    ]
    title = f"rank correlation with the attack over forget requests [{percent(run.level, 0)}]"
    return Grid(title, ["unlearning", "attack", *head], body)


def request_rows(run: Run) -> dict[tuple[int, int], Row]:
    """Return what is known of each forget request of the main setting by (target, point id)."""
    rows: list[dict[str, Any]] = run.result.get("disclosure") or []
    return {(row["target"], row["point_id"]): row for row in rows}


def request_words(run: Run) -> str:
    """Return in words how many requests there are, how many on top, and how many at the bound; "" without any."""
    rows = request_rows(run).values()
    if not rows:
        return ""
    full, top = (sum(row[name] >= least for row in rows) for name, least in (("bits", 1.0), ("percentile", 0.9)))
    return (
        f"Of {len(rows)} forget requests {top} are in the top tenth of their target’s training points. "
        f"The bound of one bit is reached by {full} and does not tell these apart."
    )
