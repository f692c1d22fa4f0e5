"""The numbers of a GNQ result that limits of ``--fail-above`` can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.engine.gate import Headline, Line
from orchestrator.gnq.plan import NONE, GnqPlan

METRICS = ("auc", "auc_low", "auc_high")


def names(plan: GnqPlan) -> dict[str, list[str]]:
    """Return the arms of ``plan``."""
    return {"arm": list(plan.arms)}


def lines(plan: GnqPlan, document: Mapping[str, Any]) -> Sequence[Line]:
    """Return the strongest attack on all contributors under each arm; a limit without an arm looks at arm none."""
    found = []
    for row in document["arms"]:
        told = row["headline"] or {}
        values = {name: told.get(name.removeprefix("auc_")) for name in METRICS}
        where = f"{row['setting']}, {row['arm']}, {told.get('attack', 'no attack')}"
        found.append(Line((row["arm"],), values, where, row["arm"] == NONE))
    return found


HEADLINE = Headline(example="auc=0.6", summary=METRICS, metrics=METRICS, parts=("arm",), names=names, lines=lines)
