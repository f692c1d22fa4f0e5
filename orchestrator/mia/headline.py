"""The numbers of a membership result that limits of ``--fail-above`` can name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, get_args

from audits.mia.attacks import MIA_ATTACKS
from audits.queries.access import Access
from orchestrator.judgement.controls import (
    DIRECTION,
    FIT,
    LEARNT,
    OWN_MODELS,
    Told,
    not_learnt,
    of_lines,
    promise,
    turned,
)
from orchestrator.judgement.lines import Headline, Line
from orchestrator.judgement.rows import FINDINGS, NULLS, Control
from orchestrator.mia.plan import MiaPlan
from orchestrator.mia.result.controls import BLIND, CANARIES
from orchestrator.mia.result.given import unlike_fits
from orchestrator.mia.result.rows import FitRow
from orchestrator.report.rows import read_row

SUMMARY = ("auc", "auc_low", "tpr", "tpr_low", "found_fpr")


def names(plan: MiaPlan) -> dict[str, list[str]]:
    """Return the attacks of ``plan``."""
    return {"attack": list(plan.audit.attacks)}


def lines(document: Mapping[str, Any]) -> Sequence[Line]:
    """Return the rows of the table at the first promised rate; the worst of all is the strongest attack."""
    first = document["plan"]["audit"]["fpr"][0]
    return [
        Line((row["attack"],), row, f"{row['setting']}, {row['attack']}", True, row["access"])
        for row in document["table"]
        if row["promised_fpr"] == first
    ]


def lost(plan: MiaPlan, document: Mapping[str, Any]) -> list[Line]:
    """Return the attacks that have no row in the table: they failed."""
    found = {row["attack"] for row in document["table"]}
    return [
        Line((attack,), {}, attack, True, MIA_ATTACKS[attack].access)
        for attack in plan.audit.attacks
        if attack not in found
    ]


def controls(document: Mapping[str, Any], counted: Sequence[Line]) -> list[Control]:
    """Return the controls: promised rates of ``counted`` lines, and canaries that must be found.

    The judge must find them, which was chosen beforehand; where it has none of these lines, one of their attacks, which
    the control then names.

    Beside a given target: own models that must be found likewise and that fit as the target does, members that stand
    out as theirs do and not the other way round, and that are not told apart without the model.
    """
    found = [promise(line.where for line in counted if line.void)]
    attacks = {line.place[0] for line in counted}
    for name, rows, what in (
        (CANARIES.term, document["canaries"], "points with a wrong label"),
        (OWN_MODELS.term, document.get("own", ()), "models of the plan's recipe"),
    ):
        if tested := [row for row in rows if row["attack"] in attacks]:
            chosen = [row for row in tested if row["attack"] == document.get("judge")] or tested
            row = max(chosen, key=lambda row: row["auc"])
            held = any((row["auc_low"] or 0.0) > 0.5 for row in chosen)
            text = f"without power, AUC {row['auc']:.3f} by {row['attack']} on {what}"
            place = name if row["attack"] == document.get("judge") else f"{name} ({row['attack']})"
            found.append(of_lines(place, NULLS, "" if held else text))
    if document["plan"].get("target") is not None:
        level = document["plan"]["audit"]["level"]
        odd = turned(((line.where, line.values.get("auc"), line.values.get("auc_p_holm")) for line in counted), level)
        text = f"members stand out the other way round, AUC {odd[1]:.3f} by {odd[0]}" if odd else ""
        found.append(of_lines(DIRECTION.term, NULLS, text))
        of_given, of_own = told_by_setting(line.values for line in counted), told_by_setting(document.get("own", ()))
        why = [not_learnt(document.get("judge"), rows, of_own.get(name, ())) for name, rows in of_given.items()]
        if any(each is not None for each in why):
            found.append(of_lines(LEARNT.term, NULLS, "; ".join(filter(None, why))))
    unlike = unlike_fits([read_row(FitRow, row, "fit") for row in document.get("fit", ())])
    if unlike or document.get("own"):
        found.append(of_lines(FIT.term, NULLS, "; ".join(unlike)))
    if blind := document.get("blind"):
        differ = [row for row in blind if row["differ"]]
        seen = "; ".join(f"AUC {row['auc']:.3f} by inputs and labels alone" for row in differ)
        found.append(of_lines(BLIND.term, FINDINGS, f"members differ by what they are, {seen}" if differ else ""))
    return found


def told_by_setting(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Told]]:
    """Return what attacks see, by setting; rows without a result are left out."""
    found: dict[str, list[Told]] = {}
    for row in rows:
        if "auc" in row:
            told = (row["attack"], row["auc"], row.get("auc_low"), row.get("auc_high"))
            found.setdefault(row["setting"], []).append(told)
    return found


HEADLINE = Headline(
    example="auc=0.6",
    summary=SUMMARY,
    metrics=(*SUMMARY, "auc_high", "null_fpr", "roc_tpr"),
    parts=("attack",),
    names=names,
    lines=lines,
    lost=lost,
    controls=controls,
    accesses=get_args(Access)[:2],
)
