"""The release gate of a membership audit: ``--fail-above METRIC=VALUE``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audits.errors import BadInput, did_you_mean
from orchestrator.gate import name_and_limit
from orchestrator.membership.plan import MembershipPlan

SUMMARY_METRICS = ("precision_low", "auc_low", "precision", "auc")
ROW_METRICS = (*SUMMARY_METRICS, "coverage", "fpr", "fresh_fpr")


@dataclass(frozen=True)
class Gate:
    """A limit on one metric; ``place`` is (setting, selection, attack), or None for the worst label-only attack."""

    text: str
    metric: str
    limit: float
    place: tuple[str, ...] | None = None


def parse_gate(text: str) -> Gate:
    """Return the gate that ``METRIC=VALUE`` describes; raises ``BadInput`` on unknown metrics and odd values."""
    name, limit = name_and_limit(text, "precision_low=0.6")
    parts = name.rsplit(".", 3)
    allowed = SUMMARY_METRICS if len(parts) == 1 else ROW_METRICS
    if len(parts) not in (1, 4) or parts[-1] not in allowed:
        raise BadInput(
            f"--fail-above {text!r}: unknown metric {name!r}{did_you_mean(parts[-1], allowed)}; allowed: "
            f"{', '.join(SUMMARY_METRICS)}, or SETTING.SELECTION.ATTACK.METRIC with one of {', '.join(ROW_METRICS)}"
        )
    return Gate(text, parts[-1], limit, tuple(parts[:3]) if len(parts) == 4 else None)


def check_gates(gates: Sequence[Gate], plan: MembershipPlan) -> None:
    """Refuse gates on settings, selections or attacks that ``plan`` does not have, before any work is done."""
    known = {
        "setting": list(plan.settings()),
        "selection": ["all", *plan.audit.selectors],
        "attack": list(plan.audit.attacks),
    }
    for gate in gates:
        for (kind, names), name in zip(known.items(), gate.place or (), strict=False):
            if name not in names:
                raise BadInput(
                    f"--fail-above {gate.text!r}: {kind} {name!r}{did_you_mean(name, names)} is not in the plan: "
                    f"{', '.join(names)}"
                )


def failures(
    gates: Iterable[Gate], cells: Sequence[Mapping[str, Any]], expected: Collection[tuple[str, str]] = ()
) -> list[str]:
    """Return one line per gate that the cells of a result do not pass.

    A named value that is missing fails. Over all cells (the worst label-only attack), cells that are not defined are
    left out: an attack that called nobody a member has no precision; if none is defined the gate is passed.
    ``expected`` (setting, attack): label-only attacks of the plan; one without any cell could not speak, and no gate
    over all cells is passed without it.
    """
    lines = []
    spoken = {(cell["setting"], cell["attack"]) for cell in cells}
    silent = [f"{attack} ({setting})" for setting, attack in expected if (setting, attack) not in spoken]
    for gate in gates:
        if gate.place is None and silent:
            lines.append(
                f"gate {gate.text}: {', '.join(silent)} said nothing, so it cannot be passed; see the warnings"
            )
            continue
        counted = [cell for cell in cells if counts(gate, cell)]
        known = [cell for cell in counted if cell.get(gate.metric) is not None]
        if not counted or (gate.place is not None and not known):
            lines.append(f"gate {gate.text}: {gate.metric} was not measured, so it cannot be passed")
            continue
        worst = max(known, key=lambda cell: float(cell[gate.metric]), default=None)
        if worst is not None and worst[gate.metric] > gate.limit:
            where = f"{worst['setting']}, {worst['selection']}, {worst['attack']}"
            lines.append(f"gate {gate.text}: {gate.metric} is {worst[gate.metric]:.3f} ({where}), above {gate.limit:g}")
    return lines


def counts(gate: Gate, cell: Mapping[str, Any]) -> bool:
    """Say whether ``gate`` looks at ``cell``."""
    if gate.place is not None:
        return (cell["setting"], cell["selection"], cell["attack"]) == gate.place
    return bool(cell["access"] == "labels")
