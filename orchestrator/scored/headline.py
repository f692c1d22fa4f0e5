"""The numbers of judged scores that limits of ``--fail-above`` can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.judgement.lines import Headline, Line

METRICS = ("auc", "auc_low", "tpr", "tpr_low")


def names(attacks: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the attacks of the files, which stand in the place of a plan."""
    return {"attack": attacks}


def lines(document: Mapping[str, Any]) -> list[Line]:
    """Return a line for each attack, its rates at the lowest promised one; the worst is sought among all."""
    first: dict[tuple[str, str], Mapping[str, Any]] = {}
    for row in document["table"]:
        first.setdefault((row["setting"], row["attack"]), row)
    return [
        Line((attack,), row, f"{setting}, {attack}", True, setting=setting, subject=attack, attack=attack)
        for (setting, attack), row in first.items()
    ]


HEADLINE = Headline(example="auc=0.6", summary=METRICS, metrics=METRICS, parts=("attack",), names=names, lines=lines)
"""Rates are those at the lowest promised false-positive rate of an attack."""
