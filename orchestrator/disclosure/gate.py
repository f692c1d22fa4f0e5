"""The release gate of a disclosure audit: ``--fail-above METRIC=VALUE``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audits.errors import BadInput, did_you_mean
from orchestrator.disclosure.plan import NONE, DisclosurePlan
from orchestrator.gate import name_and_limit

METRICS = ("auc", "auc_low", "auc_high")


@dataclass(frozen=True)
class Gate:
    """A limit on the headline of an arm: the strongest attack on all whose data was used."""

    text: str
    metric: str
    limit: float
    arm: str


def parse_gate(text: str) -> Gate:
    """Return the gate that ``METRIC=VALUE`` describes: ``auc`` (arm none) or ``ARM.auc``; raises ``BadInput``."""
    name, limit = name_and_limit(text, "auc=0.6")
    arm, _, metric = name.rpartition(".")
    if metric not in METRICS:
        raise BadInput(
            f"--fail-above {text!r}: unknown metric {name!r}{did_you_mean(metric, METRICS)}; allowed: "
            f"{', '.join(METRICS)}, or ARM.METRIC with one of them, e.g. gnq_log-0.2.auc"
        )
    return Gate(text, metric, limit, arm or NONE)


def check_gates(gates: Sequence[Gate], plan: DisclosurePlan) -> None:
    """Refuse gates on arms that ``plan`` does not have, before any work is done."""
    for gate in gates:
        if gate.arm not in plan.arms:
            raise BadInput(
                f"--fail-above {gate.text!r}: arm {gate.arm!r}{did_you_mean(gate.arm, plan.arms)} is not in the plan: "
                f"{', '.join(plan.arms)}"
            )


def failures(gates: Iterable[Gate], arms: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one line per gate that the arms of a result do not pass; what was not measured fails."""
    lines = []
    for gate in gates:
        for row in arms:
            if row["arm"] != gate.arm:
                continue
            told = row["headline"] or {}
            value = told.get(gate.metric.removeprefix("auc_"))
            if value is None:
                lines.append(f"gate {gate.text}: {gate.metric} was not measured, so it cannot be passed")
            elif value > gate.limit:
                where = f"{row['setting']}, {row['arm']}, {told['attack']}"
                lines.append(f"gate {gate.text}: {gate.metric} is {value:.3f} ({where}), above {gate.limit:g}")
    return lines
