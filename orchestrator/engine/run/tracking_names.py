"""Names under which a run is tracked: parameters from the plan, metrics from the tables, made to compare well."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from orchestrator.engine.kind import StandIns

NOTE = "mlflow.note.content"
"""The tag whose text MLflow shows as the description of a run or of a model."""


LONGEST = 250
"""Characters of the name of a metric or parameter in MLflow."""


def flatten(nested: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a nested plan as ``dotted.path: value``; lists of mappings by their ``method`` or position."""
    flat: dict[str, Any] = {}
    for key, value in nested.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping) and value:
            flat |= flatten(value, f"{path}.")
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            names = [str(item.get("method", index)) for index, item in enumerate(value)]
            flat[path] = ", ".join(names)
            for index, (name, item) in enumerate(zip(names, value, strict=True)):
                label = name if names.count(name) == 1 else f"{name}.{index}"
                flat |= flatten({k: v for k, v in item.items() if k != "method"}, f"{path}.{label}.")
        else:
            flat[path] = value
    return flat


def settled(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters without those that are not set, which would be the word None on an axis of numbers."""
    return {name: value for name, value in params.items() if value is not None}


def effective(params: Mapping[str, Any], stand_ins: StandIns) -> dict[str, Any]:
    """Return the parameters of a plan as they take effect: with numbers that nulls stand for, without other nulls."""
    return settled({**stand_ins(params), **settled(params)})


def allowed_name(name: str) -> str:
    """Return a name as MLflow allows it: its characters, no path to elsewhere, not too long.

    A long one is cut, and ends with a digest of the whole.
    """
    parts = re.sub(r"[^\w\-. /]", "_", name).split("/")
    allowed = "/".join("_" if part in ("", ".", "..") else part for part in parts)
    if len(allowed) <= LONGEST:
        return allowed
    return f"{allowed[: LONGEST - 17]}-{hashlib.sha256(allowed.encode()).hexdigest()[:16]}"


def plan_hash(plan: Mapping[str, Any]) -> str:
    """Return a short hash of the resolved plan, the same for the same audit."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True, default=str).encode()).hexdigest()[:16]
