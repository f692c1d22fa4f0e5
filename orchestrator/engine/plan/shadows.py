"""Shadows of another architecture or recipe than the targets: what differs, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.engine.plan.errors import shown

if TYPE_CHECKING:
    from orchestrator.engine.plan.base import BasePlan


def unlike_shadows(plan: BasePlan) -> list[str]:
    """Return a line where shadows have another architecture or recipe than the targets, with what differs."""
    resolved = plan.resolved()
    different = [
        line
        for name in ("model", "recipe")
        if resolved[f"shadow_{name}"]
        for line in differences(name, resolved[f"shadow_{name}"], resolved[name])
    ]
    if not different:
        return []
    return [
        f"shadows are trained unlike the targets ({', '.join(different)}): thresholds, p- and q-values hold only as "
        "far as targets behave like shadows; expect broken promises, and read the found false-positive rates first"
    ]


def differences(path: str, shadows: Any, targets: Any) -> list[str]:
    """Return the fields below ``path`` in which plain values differ, and both values."""
    if isinstance(shadows, Mapping) and isinstance(targets, Mapping):
        if shadows.get("name") != targets.get("name"):
            return differences(f"{path}.name", shadows.get("name"), targets.get("name"))
        names = dict.fromkeys([*shadows, *targets])
        return [line for name in names for line in differences(f"{path}.{name}", shadows.get(name), targets.get(name))]
    return [] if shadows == targets else [f"{path} {shown(shadows)} instead of {shown(targets)}"]
