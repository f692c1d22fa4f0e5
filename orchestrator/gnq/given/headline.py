"""The numbers of a GNQ audit of a given model that limits of ``--fail-above`` can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.gnq.given.design import GROUPS
from orchestrator.gnq.given.plan import GivenPlan
from orchestrator.judgement.lines import Headline, Line

METRICS = ("exposed", "bits")


def names(plan: GivenPlan) -> dict[str, list[str]]:
    """Return the groups of points."""
    return {"group": list(GROUPS)}


def lines(document: Mapping[str, Any]) -> Sequence[Line]:
    """Return the line of each group; a limit without a group looks at the members."""
    return [
        Line(
            (row["group"],), row, f"{row['setting']}, {row['group']}", row["group"] == GROUPS[0], setting=row["setting"]
        )
        for row in document["table"]
    ]


HEADLINE = Headline(
    example="exposed=0.01",
    summary=METRICS,
    metrics=METRICS,
    parts=("group",),
    names=names,
    lines=lines,
)
