"""The numbers of a TMIA result that limits of ``--fail-above`` can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from audits.queries.access import Access
from audits.tmia.attacks import ATTACKS
from orchestrator.judgement.controls import FIT, LEARNT, OWN_MODELS, of_lines
from orchestrator.judgement.lines import Headline, Line
from orchestrator.judgement.rows import FINDINGS, NULLS, RATES, Control
from orchestrator.report.rows import read_row
from orchestrator.tmia.plan import TmiaPlan
from orchestrator.tmia.result.controls import ALIKE, NON_MEMBERS, NULL_MODELS, OVERFITTED, judges_of, sight
from orchestrator.tmia.result.given import compared, of_students, own_power, unlearnt, unlike_fits
from orchestrator.tmia.result.given_rows import ControlCell
from orchestrator.tmia.result.rows import FitRow, OverfittedRow

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


def controls(document: Mapping[str, Any], counted: Sequence[Line]) -> list[Control]:
    """Return the controls: no attack may call null models members more often than promised.

    Members of over-fitted models must be found, or beside a given model those of the plan's own models. With a given
    model also its known non-members, that the plan's models fit as it does, and that members are like non-members.
    """
    rates, given = {NULL_MODELS: "null_fpr"}, document["plan"].get("target") is not None
    if given:
        rates[NON_MEMBERS] = "fpr"
    found = []
    for what, rate in rates.items():
        off = [row for row in document["table"] if row.get(f"{rate}_off")]
        listed = "; ".join(f"{row['setting']}, {row['selection']}, {row['attack']} {row[rate]:.1%}" for row in off)
        if off or any(row.get(rate) is not None for row in document["table"]):
            text = f"called members more often than {off[0]['beta']:.1%} by {listed}" if off else ""
            found.append(of_lines(what.term, RATES, text))
    found += powers(document, counted, given)
    fits = [read_row(FitRow, row, "fit") for row in document.get("fit", ())]
    if given and compared(fits):
        students = of_students((each["setting"], each["mode"]) for each in document["settings"])
        found.append(of_lines(FIT.term, NULLS, "; ".join(unlike_fits(fits, students))))
    if given:
        found += learnt(document, counted)
    if alike := document.get("alike"):
        differ = "; ".join(f"AUC {row['auc']:.3f} ({row['setting']})" for row in alike if row["differ"])
        text = f"models that saw neither tell members from non-members, {differ}" if differ else ""
        found.append(of_lines(ALIKE.term, FINDINGS, text))
    return found


def powers(document: Mapping[str, Any], counted: Sequence[Line], given: bool) -> list[Control]:
    """Return the control that attacks of the lines see: members of over-fitted models, or beside a given model of own.

    One of the verdict's must find them, which were chosen beforehand; where the lines have none of these, any of
    theirs, which the control then names. Without such models it has failed.
    """
    control = OWN_MODELS if given else OVERFITTED
    cells = [read_row(ControlCell, row, "controls") for row in document.get("controls", ())]
    memorised = [read_row(OverfittedRow, row, "overfitted") for row in document.get("overfitted", ())]
    attacks = {line.place[2] for line in counted}
    judges = [name for name in judges_of([row["attack"] for row in document["table"]]) if name in attacks]
    blind, name = [], control.term
    for setting in dict.fromkeys(line.place[0] for line in counted):
        asked = judges or sorted(attacks)
        best = (
            own_power([cell for cell in cells if cell.setting == setting], asked)
            if given
            else sight([row for row in memorised if row.setting == setting], asked)
        )
        if best is None:
            blind.append(f"no result ({setting})")
        elif not best[1].above(0.5):
            blind.append(f"AUC {float(best[1]):.3f} by {best[0]} ({setting})")
        if best is not None and not judges:
            name = f"{control.term} ({best[0]})"
    whose = "models of the plan's recipe" if given else control.description
    text = f"without power on {whose}, {'; '.join(blind)}" if blind else ""
    return [of_lines(name, NULLS, text)] if counted else []


def learnt(document: Mapping[str, Any], counted: Sequence[Line]) -> list[Control]:
    """Return the control that members of a given model stand out as those of own models, where these do."""
    cells = [read_row(ControlCell, row, "controls") for row in document.get("controls", ())]
    attacks = {line.place[2] for line in counted}
    judges = [name for name in judges_of([row["attack"] for row in document["table"]]) if name in attacks]
    told = []
    for setting in dict.fromkeys(line.place[0] for line in counted):
        table = [
            (row["selection"], (row["attack"], row["auc"], row.get("auc_low"), row.get("auc_high")))
            for row in document["table"]
            if row["setting"] == setting
        ]
        own = [cell for cell in cells if cell.setting == setting]
        told.append(unlearnt(table, own, judges or sorted(attacks)))
    if all(each is None for each in told):
        return []
    return [of_lines(LEARNT.term, NULLS, "; ".join(filter(None, told)))]


HEADLINE = Headline(
    example="precision_low=0.6",
    summary=SUMMARY,
    metrics=(*SUMMARY, "coverage", "fpr", "null_fpr"),
    parts=("setting", "selection", "attack"),
    names=names,
    lines=lines,
    lost=lost,
    controls=controls,
    accesses=get_args(Access)[:2],
    undefined_fails=False,
)
"""A cell without precision (an attack that called nobody a member) is left out when the worst is sought."""
