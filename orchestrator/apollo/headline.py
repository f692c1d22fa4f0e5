"""The numbers of an Apollo result that limits of ``--fail-above`` can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.apollo.plan import ApolloPlan
from orchestrator.engine.gate import Headline, Line

SUMMARY = ("auc", "tpr", "found_fpr")
CONTROLS = ("identity", "retrain")


def names(plan: ApolloPlan) -> dict[str, list[str]]:
    """Return the unlearners and the attacks of ``plan``."""
    return {"unlearner": [entry.label for entry in plan.unlearning], "attack": list(plan.audit.attacks)}


def approximate(plan: ApolloPlan) -> set[str]:
    """Return the labels of the unlearners that are no controls."""
    return {entry.label for entry in plan.unlearning if entry.method not in CONTROLS}


def refusal(plan: ApolloPlan) -> str:
    """Return why there is no worst line: the plan has only controls."""
    if approximate(plan):
        return ""
    return (
        "the plan has only controls, nothing to take the maximum over; "
        "name a row, e.g. identity.apollo.auc, or add an unlearning method"
    )


def lines(plan: ApolloPlan, document: Mapping[str, Any]) -> Sequence[Line]:
    """Return the rows of the table; the worst is sought among label-only attacks on approximate unlearners."""
    counted = approximate(plan)
    return [
        Line(
            (row["unlearner"], row["attack"]),
            row,
            f"{row['unlearner']}, {row['attack']}",
            row["unlearner"] in counted and row["access"] == "labels",
        )
        for row in document["table"]
    ]


HEADLINE = Headline(
    example="auc=0.6",
    summary=SUMMARY,
    metrics=(*SUMMARY, "auc_low", "tpr_low", "found_fpr_low", "roc_tpr"),
    parts=("unlearner", "attack"),
    names=names,
    lines=lines,
    refusal=refusal,
)
