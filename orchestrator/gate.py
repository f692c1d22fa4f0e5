"""The release gate: ``--fail-above METRIC=VALUE`` turns a result into an exit code."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from audits.errors import BadInput, did_you_mean

if TYPE_CHECKING:
    from orchestrator.plan import Plan

SUMMARY_METRICS = ("auc", "tpr", "found_fpr")
ROW_METRICS = (*SUMMARY_METRICS, "auc_low", "tpr_low", "found_fpr_low", "roc_tpr")
CONTROLS = ("identity", "retrain")


@dataclass(frozen=True)
class Gate:
    """A limit on one metric; ``unlearner`` and ``attack`` are None for the maximum over all that count.

    The maximum runs over approximate unlearners (not identity, not retrain) and label-only attacks.
    """

    text: str
    metric: str
    limit: float
    unlearner: str | None = None
    attack: str | None = None


def parse_gate(text: str) -> Gate:
    """Return the gate that ``METRIC=VALUE`` describes; raises ``BadInput`` on unknown metrics and odd values."""
    name, limit = name_and_limit(text, "auc=0.6")
    parts = name.split(".")
    allowed = SUMMARY_METRICS if len(parts) == 1 else ROW_METRICS
    if len(parts) not in (1, 3) or parts[-1] not in allowed:
        raise BadInput(
            f"--fail-above {text!r}: unknown metric {name!r}{did_you_mean(parts[-1], allowed)}; allowed: "
            f"{', '.join(SUMMARY_METRICS)}, or UNLEARNER.ATTACK.METRIC with one of {', '.join(ROW_METRICS)}"
        )
    return Gate(text, parts[-1], limit, *(parts[:2] if len(parts) == 3 else ()))


def name_and_limit(text: str, example: str) -> tuple[str, float]:
    """Return name and value of ``METRIC=VALUE``; raises ``BadInput``, with an ``example``, for anything else."""
    name, separator, value = text.partition("=")
    if not separator:
        raise BadInput(f"--fail-above {text!r}: write it as METRIC=VALUE, e.g. --fail-above {example}")
    try:
        limit = float(value)
    except ValueError:
        limit = math.nan
    if not 0 <= limit < 1:
        raise BadInput(f"--fail-above {text!r}: the value must be a number from 0 up to, but not, 1")
    return name, limit


def check_gates(gates: Sequence[Gate], plan: Plan) -> None:
    """Refuse gates on unlearners or attacks that ``plan`` does not run, before any work is done."""
    unlearners = [entry.label for entry in plan.unlearning]
    for gate in gates:
        for kind, name, known in (
            ("unlearner", gate.unlearner, unlearners),
            ("attack", gate.attack, list(plan.audit.attacks)),
        ):
            if name is not None and name not in known:
                near = did_you_mean(name, known)
                raise BadInput(
                    f"--fail-above {gate.text!r}: {kind} {name!r}{near} is not in the plan: {', '.join(known)}"
                )
        if gate.unlearner is None and not approximate(plan):
            raise BadInput(
                f"--fail-above {gate.text!r}: the plan has only controls, nothing to take the maximum over; "
                "name a row, e.g. identity.apollo.auc, or add an unlearning method"
            )


def approximate(plan: Plan) -> set[str]:
    """Return the labels of the unlearners that are no controls."""
    return {entry.label for entry in plan.unlearning if entry.method not in CONTROLS}


def failures(gates: Iterable[Gate], rows: Sequence[Mapping[str, Any]], plan: Plan) -> list[str]:
    """Return one line per gate that the table ``rows`` of a result does not pass (a value that is missing fails)."""
    lines = []
    for gate in gates:
        counted = [row for row in rows if counts(gate, row, approximate(plan))]
        if not counted:
            lines.append(f"gate {gate.text}: no row of the result has this metric, so it cannot be passed")
            continue
        worst = max(counted, key=lambda row: weight(row.get(gate.metric)))
        value = worst.get(gate.metric)
        where = f"{worst['unlearner']}, {worst['attack']}"
        if value is None or math.isnan(value):
            lines.append(f"gate {gate.text}: {gate.metric} was not measured ({where}), so it cannot be passed")
        elif value > gate.limit:
            lines.append(f"gate {gate.text}: {gate.metric} is {value:.3f} ({where}), above {gate.limit:g}")
    return lines


def counts(gate: Gate, row: Mapping[str, Any], unlearners: set[str]) -> bool:
    """Say whether ``gate`` looks at ``row``."""
    if gate.unlearner is not None:
        return (row["unlearner"], row["attack"]) == (gate.unlearner, gate.attack)
    return row["unlearner"] in unlearners and row["access"] == "labels"


def weight(value: float | None) -> float:
    """Return ``value`` for a maximum in which what was not measured is worst of all."""
    return math.inf if value is None or math.isnan(value) else value
