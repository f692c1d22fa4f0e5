"""The numbers of a toy result that limits of ``--fail-above`` can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.judgement.lines import Headline, Line
from tests.orchestrator.toy.plan import ToyPlan


def names(plan: ToyPlan) -> dict[str, list[str]]:
    """Return the attacks of ``plan``."""
    return {"attack": list(plan.audit.attacks)}


def lines(document: Mapping[str, Any]) -> Sequence[Line]:
    """Return the lines of the table; the worst of all is the strongest attack."""
    return [
        Line((attack,), row, f"{setting}, {attack}", True, setting=setting, attack=attack)
        for row in document["table"]
        for setting, attack in [(row["setting"], row["attack"])]
    ]


HEADLINE = Headline(example="auc=0.6", summary=("auc",), metrics=("auc",), parts=("attack",), names=names, lines=lines)
