"""The numbers of an Apollo result that limits of ``--fail-above`` can name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, get_args

from audits.apollo.attacks import ATTACKS
from audits.queries.access import Access
from orchestrator.apollo.plan import CONTROLS, ApolloPlan, UnlearningMethod
from orchestrator.apollo.result.controls import (
    HELD,
    IDENTITY,
    OFF_CHANCE,
    RETRAIN,
    control_in,
    not_learnt,
    turned_methods,
)
from orchestrator.judgement.controls import DIRECTION, LEARNT, of_lines, promise
from orchestrator.judgement.lines import Headline, Line
from orchestrator.judgement.rows import FINDINGS, NULLS, Control, Protects

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
    counts = unlearner in methods
    where = f"{unlearner}, {attack}"
    return Line((unlearner, attack), values, where, counts and access == "labels", access if counts else "")


def controls(document: Mapping[str, Any], counted: Sequence[Line]) -> list[Control]:
    """Return the controls of ``counted`` lines: ``retrain`` by any attack, ``identity`` by all attacks of these lines.

    So is the promised rate of a ``counted`` line: what is void passes no limit. An attack that sees nothing where
    nothing was unlearned says nothing where something was; one that sees something where the points were never learnt
    sees something other than unlearning.
    """
    attacks = {line.place[1] for line in counted}
    rows: Mapping[str, list[Mapping[str, Any]]] = {name: [] for name in CONTROLS}
    for row in document["table"]:
        control = control_in(row)
        if control == RETRAIN.term or (control == IDENTITY.term and row["attack"] in attacks):
            rows[control].append(row)
    judges: tuple[tuple[str, Callable[[Sequence[Mapping[str, Any]]], str], Protects], ...] = (
        (RETRAIN.term, off_chance, FINDINGS),
        (IDENTITY.term, without_power, NULLS),
    )
    found = [
        of_lines(name, protects, judge(rows[name]) if rows[name] else "no result")
        for name, judge, protects in judges
        if counted
    ]
    return [*found, *of_model(document, counted), promise(line.where for line in counted if line.void)]


def of_model(document: Mapping[str, Any], counted: Sequence[Line]) -> list[Control]:
    """Return the controls of the models that were asked: no deleted points stand out the other way round, as where a
    method forgets too much; a given model was trained on the points that it is said to have kept."""
    level = document["plan"]["audit"]["level"]
    by_setting: dict[str, list[Line]] = {}
    for each in counted:
        if each.access and each.access != "oracle":
            by_setting.setdefault(each.values.get("setting") or "", []).append(each)  # type: ignore[arg-type]
    odd = [
        f"{method} (AUC {auc:.3f} by {attack})"
        for own in by_setting.values()
        for method, attack, auc in turned_methods(
            ((*named(each), each.values.get("auc"), each.values.get("auc_p_holm")) for each in own), level
        )
    ]
    text = f"deleted points stand out the other way round: {'; '.join(dict.fromkeys(odd))}" if odd else ""
    found = [of_lines(DIRECTION.term, NULLS, text)] if by_setting else []
    if document["plan"].get("target") is not None:
        own_models = {row["unlearner"]: control_in(row) for row in document["table"]}
        told = [
            not_learnt(
                (own_models.get(name := row["unlearner"]), name, row["retain_accuracy"], row["test_accuracy"])
                for row in own
            )
            for own in of_settings(document.get("setting_utility") or document.get("utility", ()))
        ]
        if any(each is not None for each in told):
            found.append(of_lines(LEARNT.term, NULLS, "; ".join(filter(None, told))))
    return found


def named(line: Line) -> tuple[str, str]:
    """Return the method and the attack of a line."""
    method, attack = line.place
    return method, attack


def of_settings(rows: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return rows by their setting, as one where they name none."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        found.setdefault(row.get("setting", ""), []).append(row)
    return list(found.values())


def off_chance(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how the control ``retrain`` failed in ``rows``, or ""."""
    off = sorted({row["attack"] for row in rows if row.get("control") == OFF_CHANCE})
    return f"{', '.join(off)} {'is' if len(off) == 1 else 'are'} off chance, where nothing may be found" if off else ""


def without_power(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return how the control ``identity`` failed in ``rows``, or ""."""
    if any(row.get("control") == HELD for row in rows):
        return ""
    row = max(rows, key=lambda row: row["auc"])
    seen = f"{row['auc']:.3f} [{row['auc_low']:.3f}, {row['auc_high']:.3f}] by {row['attack']}"
    return f"without power, AUC {seen}, though nothing was unlearned"


HEADLINE = Headline(
    example="auc=0.6",
    summary=SUMMARY,
    metrics=(*SUMMARY, "auc_low", "tpr_low", "found_fpr_low", "roc_tpr"),
    parts=("unlearner", "attack"),
    names=names,
    lines=lines,
    refusal=refusal,
    lost=lost,
    controls=controls,
    accesses=get_args(Access),
)
