"""The entry of an audit in the list of tracked runs, before any run is opened: tags, and its worst numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from orchestrator.engine.kind import Kind
from orchestrator.engine.media import visible
from orchestrator.judgement.gate import is_number


@dataclass(frozen=True)
class TrackedHeadline:
    """``numbers``: the worst of each metric, under the names that limits have; ``worst``: whose the first one is."""

    numbers: Mapping[str, float] = field(default_factory=dict)
    worst: str = ""


def headline_of(kind: Kind, document: Mapping[str, Any], setting: str) -> TrackedHeadline:
    """Return the numbers that a limit without a place (``--fail-above auc=…``) would look at in one setting.

    Nothing for a plan that has no worst line, such as one of controls alone.
    """
    plan = kind.check(document["plan"], ())
    if kind.headline.refusal(plan):
        return TrackedHeadline()
    counted = [line for line in kind.headline.lines(of_setting(document, setting)) if line.worst]
    numbers, worst = {}, ""
    for metric in kind.headline.summary:
        known = [line for line in counted if is_number(line.values.get(metric)) and not line.is_void(metric)]
        if known:
            most = max(known, key=lambda line: line.values[metric] or 0.0)
            numbers[metric] = float(most.values[metric] or 0.0)
            worst = worst or most.where
    return TrackedHeadline(numbers, worst)


def of_setting(document: Mapping[str, Any], setting: str) -> dict[str, Any]:
    """Return a result without the rows of other settings."""
    return {name: rows_of(value, setting) for name, value in document.items()}


def rows_of(value: Any, setting: str) -> Any:
    """Return a list of rows without those of other settings, anything else as it is."""
    if not isinstance(value, list):
        return value
    return [row for row in value if not isinstance(row, Mapping) or row.get("setting", setting) == setting]


def tags_of(plan: Mapping[str, Any]) -> dict[str, str]:
    """Return the tags by which runs in a list are told apart: data, model, seed, and the target that is given."""
    said = {
        "orch.data": (plan.get("data") or {}).get("name"),
        "orch.model": (plan.get("model") or {}).get("name"),
        "orch.seed": plan.get("seed"),
        "orch.target": (plan.get("target") or {}).get("weights"),
    }
    return {name: visible(str(value)) for name, value in said.items() if value is not None}
