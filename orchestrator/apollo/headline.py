"""The numbers of an Apollo result that limits of ``--fail-above`` can name."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, get_args

from audits.apollo.attacks import ATTACKS
from audits.queries.access import Access
from orchestrator.apollo.plan import CONTROLS, ApolloPlan, UnlearningMethod
from orchestrator.judgement.lines import Headline, Line

SUMMARY = ("auc", "tpr", "found_fpr")


def names(plan: ApolloPlan) -> dict[str, list[str]]:
    """Return the unlearners and the attacks of ``plan``."""
    return {"unlearner": [entry.label for entry in plan.unlearning], "attack": list(plan.audit.attacks)}


def approximate(entries: Iterable[UnlearningMethod]) -> set[str]:
    """Return the labels of the unlearners that are no controls."""
    return {entry.label for entry in entries if entry.method not in CONTROLS}


def refusal(plan: ApolloPlan) -> str:
    """Return why there is no worst line: the plan has only controls."""
    if approximate(plan.unlearning):
        return ""
    return (
        "the plan has only controls, nothing to take the maximum over; "
        "name a row, e.g. identity.apollo.auc, or add an unlearning method"
    )


def lines(document: Mapping[str, Any]) -> Sequence[Line]:
    """Return the rows of the table; the worst is sought among label-only attacks on approximate unlearners."""
    methods = approximate(UnlearningMethod.model_validate(each) for each in document["plan"]["unlearning"])
    return [line(methods, row["unlearner"], row["attack"], row["access"], row) for row in document["table"]]


def lost(plan: ApolloPlan, document: Mapping[str, Any]) -> Sequence[Line]:
    """Return the rows that the table lacks: attacks that failed against an unlearner."""
    found = {(row["unlearner"], row["attack"]) for row in document["table"]}
    methods = approximate(plan.unlearning)
    return [
        line(methods, entry.label, attack, ATTACKS[attack].access, {})
        for entry in plan.unlearning
        for attack in plan.audit.attacks
        if (entry.label, attack) not in found
    ]


def line(methods: Collection[str], unlearner: str, attack: str, access: str, values: Mapping[str, Any]) -> Line:
    """Return a row of the table as limits look at it; what is none of the ``methods`` takes part in no worst line."""
    counts, where = unlearner in methods, f"{unlearner}, {attack}"
    whose = {"setting": str(values.get("setting") or ""), "subject": unlearner, "attack": attack}
    return Line((unlearner, attack), values, where, counts and access == "labels", access if counts else "", **whose)


HEADLINE = Headline(
    example="auc=0.6",
    summary=SUMMARY,
    metrics=(*SUMMARY, "auc_low", "tpr_low", "found_fpr_low", "roc_tpr"),
    parts=("unlearner", "attack"),
    names=names,
    lines=lines,
    refusal=refusal,
    lost=lost,
    accesses=get_args(Access),
)
