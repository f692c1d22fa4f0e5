"""The numbers of a TMIA result that limits of ``--fail-above`` can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from audits.queries.access import Access
from audits.tmia.attacks import ATTACKS
from orchestrator.judgement.lines import Headline, Line
from orchestrator.tmia.plan import TmiaPlan

SUMMARY = ("precision_low", "auc_low", "precision", "auc")


def names(plan: TmiaPlan) -> dict[str, list[str]]:
    """Return the settings, selections and attacks of ``plan``."""
    return {
        "setting": list(plan.settings()),
        "selection": ["all", *plan.audit.selectors],
        "attack": list(plan.audit.attacks),
    }


def lines(document: Mapping[str, Any]) -> Sequence[Line]:
    """Return the cells of the table; the worst is sought among label-only attacks."""
    return [
        Line(
            (row["setting"], row["selection"], row["attack"]),
            row,
            f"{row['setting']}, {row['selection']}, {row['attack']}",
            row["access"] == "labels",
            row["access"],
            setting=row["setting"],
            attack=row["attack"],
        )
        for row in document["table"]
    ]


def lost(plan: TmiaPlan, document: Mapping[str, Any]) -> list[Line]:
    """Return the attacks of each setting that have no cell in the table: they failed."""
    found = {(row["setting"], row["attack"]) for row in document["table"]}
    return [
        Line((setting, selection, attack), {}, f"{attack} ({setting})", access == "labels" and not place, access)
        for setting, changes in plan.settings().items()
        for attack in plan.changed(changes).audit.attacks
        if (setting, attack) not in found
        for access in [ATTACKS[attack].access]
        for place, selection in enumerate(names(plan)["selection"])
    ]


HEADLINE = Headline(
    example="precision_low=0.6",
    summary=SUMMARY,
    metrics=(*SUMMARY, "coverage", "fpr", "null_fpr"),
    parts=("setting", "selection", "attack"),
    names=names,
    lines=lines,
    lost=lost,
    accesses=get_args(Access)[:2],
    undefined_fails=False,
)
"""A cell without precision (an attack that called nobody a member) is left out when the worst is sought."""
