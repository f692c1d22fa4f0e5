"""The numbers of a membership result that limits of ``--fail-above`` can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from audits.mia.attacks import MIA_ATTACKS
from audits.queries.access import Access
from orchestrator.judgement.lines import Headline, Line
from orchestrator.mia.plan import MiaPlan

SUMMARY = ("auc", "auc_low", "tpr", "tpr_low", "found_fpr")


def names(plan: MiaPlan) -> dict[str, list[str]]:
    """Return the attacks of ``plan``."""
    return {"attack": list(plan.audit.attacks)}


def lines(document: Mapping[str, Any]) -> Sequence[Line]:
    """Return the rows of the table at the first promised rate; the worst of all is the strongest attack."""
    first = document["plan"]["audit"]["fpr"][0]
    return [
        Line((attack,), row, f"{setting}, {attack}", True, row["access"], setting=setting, attack=attack)
        for row in document["table"]
        if row["promised_fpr"] == first
        for setting, attack in [(row["setting"], row["attack"])]
    ]


def lost(plan: MiaPlan, document: Mapping[str, Any]) -> list[Line]:
    """Return the attacks that have no row in the table: they failed."""
    found = {row["attack"] for row in document["table"]}
    return [
        Line((attack,), {}, attack, True, MIA_ATTACKS[attack].access)
        for attack in plan.audit.attacks
        if attack not in found
    ]


HEADLINE = Headline(
    example="auc=0.6",
    summary=SUMMARY,
    metrics=(*SUMMARY, "auc_high", "null_fpr", "roc_tpr"),
    parts=("attack",),
    names=names,
    lines=lines,
    lost=lost,
    accesses=get_args(Access)[:2],
)
