"""The numbers of a GNQ result that limits of ``--fail-above`` can name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

from audits.gnq.attacks.base import POOL_ATTACKS, PoolAccess
from orchestrator.gnq.plan import NONE, GnqPlan
from orchestrator.judgement.lines import Headline, Line

METRICS = ("auc", "auc_low", "auc_high")


def names(plan: GnqPlan) -> dict[str, list[str]]:
    """Return the arms of ``plan``."""
    return {"arm": list(plan.arms)}


def lines(document: Mapping[str, Any]) -> Sequence[Line]:
    """Return the strongest attack on all contributors under each arm; a limit without an arm looks at arm none.

    Within an access: the single attacks under arm none.
    """
    found = []
    for row in document["arms"]:
        told = row["headline"] or {}
        values = {name: told.get(name.removeprefix("auc_")) for name in METRICS}
        where = f"{row['setting']}, {row['arm']}, {told.get('attack', 'no attack')}"
        whose = {"setting": row["setting"], "subject": row["arm"], "attack": told.get("attack", "")}
        found.append(Line((row["arm"],), values, where, row["arm"] == NONE, **whose))
    return [*found, *single(document)]


def single(document: Mapping[str, Any]) -> list[Line]:
    """Return the attacks on all contributors under arm none, one by one."""
    place = (NONE, "contributors", "after")
    return [
        Line((NONE, attack), row, f"{setting}, {NONE}, {attack}", False, row["access"], setting, NONE, attack)
        for row in document["table"]
        if (row["arm"], row["group"], row["moment"]) == place
        for setting, attack in [(row["setting"], row["attack"])]
    ]


def lost(plan: GnqPlan, document: Mapping[str, Any]) -> list[Line]:
    """Return the attacks that have no row under an arm: they failed, and its headline is not the strongest of all."""
    found = {(row["setting"], row["arm"], row["attack"]) for row in document["table"]}
    absent = [
        (row["setting"], row["arm"], attack)
        for row in document["arms"]
        for attack in plan.audit.attacks
        if not row["diverged"] and (row["setting"], row["arm"], attack) not in found
    ]
    return [
        Line((arm,), {}, f"{setting}, {arm}, {attack}", arm == NONE, POOL_ATTACKS[attack].access if arm == NONE else "")
        for setting, arm, attack in absent
    ]


HEADLINE = Headline(
    example="auc=0.6",
    summary=METRICS,
    metrics=METRICS,
    parts=("arm",),
    names=names,
    lines=lines,
    lost=lost,
    accesses=get_args(PoolAccess),
)
