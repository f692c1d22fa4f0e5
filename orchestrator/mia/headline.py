"""The numbers of a membership result that limits of ``--fail-above`` can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from audits.mia.attacks import MIA_ATTACKS
from audits.queries.access import Access
from orchestrator.engine.gate import Headline, Line
from orchestrator.mia.plan import MiaPlan
from orchestrator.mia.result.given import unlike_fits
from orchestrator.mia.result.rows import FitRow
from orchestrator.report.rows import read_row

SUMMARY = ("auc", "auc_low", "tpr", "tpr_low", "found_fpr")


def names(plan: MiaPlan) -> dict[str, list[str]]:
    """Return the attacks of ``plan``."""
    return {"attack": list(plan.audit.attacks)}


def lines(plan: MiaPlan, document: Mapping[str, Any]) -> Sequence[Line]:
    """Return the rows of the table at the first promised rate; the worst of all is the strongest attack."""
    return [
        Line((row["attack"],), row, f"{row['setting']}, {row['attack']}", True, row["access"])
        for row in document["table"]
        if row["promised_fpr"] == plan.audit.fpr[0]
    ]


def lost(plan: MiaPlan, document: Mapping[str, Any]) -> list[Line]:
    """Return the attacks that have no row in the table: they failed."""
    found = {row["attack"] for row in document["table"]}
    return [
        Line((attack,), {}, attack, True, MIA_ATTACKS[attack].access)
        for attack in plan.audit.attacks
        if attack not in found
    ]


def failed_controls(plan: MiaPlan, document: Mapping[str, Any], counted: Sequence[Line]) -> list[str]:
    """Return the controls that failed: promised rates of ``counted`` lines, and canaries that none of them finds.

    Beside a given target: own models that none of them finds or that fit otherwise than the target, and members that
    are told apart without the model.
    """
    void = dict.fromkeys(line.where for line in counted if line.values.get("void"))
    found = [f"promised rate: not kept, so that {'; '.join(void)} is void"] if void else []
    attacks = {line.place[0] for line in counted}
    tested = [row for row in document["canaries"] if row["attack"] in attacks]
    if tested and not any((row["auc_low"] or 0.0) > 0.5 for row in tested):
        row = max(tested, key=lambda row: row["auc"])
        found.append(f"canaries: without power, AUC {row['auc']:.3f} by {row['attack']} on points with a wrong label")
    own = [row for row in document.get("own", ()) if row["attack"] in attacks]
    if own and not any((row["auc_low"] or 0.0) > 0.5 for row in own):
        row = max(own, key=lambda row: row["auc"])
        found.append(
            f"own models: without power, AUC {row['auc']:.3f} by {row['attack']} on models of the plan's recipe"
        )
    fits = [read_row(FitRow, row, "fit") for row in document.get("fit", ())]
    found += [f"own models: {text}" for text in unlike_fits(fits)]
    found += [
        f"without the model: members differ by what they are, AUC {row['auc']:.3f} by inputs and labels alone"
        for row in document.get("blind", ())
        if row["differ"]
    ]
    return found


HEADLINE = Headline(
    example="auc=0.6",
    summary=SUMMARY,
    metrics=(*SUMMARY, "auc_high", "null_fpr", "roc_tpr"),
    parts=("attack",),
    names=names,
    lines=lines,
    lost=lost,
    failed_controls=failed_controls,
    accesses=get_args(Access)[:2],
)
