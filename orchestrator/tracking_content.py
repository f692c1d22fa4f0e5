"""What a run tells its tracker: parameters from the plan, metrics from the tables, under names that compare well."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

AREA = ("auc", "auc_low", "auc_high", "auc_p", "auc_p_holm", "queries_per_point")
RATES = ("tpr", "tpr_low", "tpr_high", "found_fpr", "found_fpr_low", "found_fpr_high", "roc_tpr")
DISCOVERIES = ("discoveries", "fdp", "power")
UTILITY = ("retain_accuracy", "forget_accuracy", "test_accuracy", "distance", "seconds")


def metrics(result: Mapping[str, Any], setting: str) -> dict[str, float]:
    """Return ``unlearner.attack.metric`` of a setting and ``unlearner.utility.metric`` averaged over targets.

    Rates at another promised FPR than the first carry it in their name: ``….tpr_at_0.1``.
    """
    found: dict[str, float] = {}
    first = result["table"][0]["promised_fpr"]
    for row in result["table"]:
        if row["setting"] == setting:
            suffix = "" if row["promised_fpr"] == first else f"_at_{row['promised_fpr']:g}"
            names = {name: name for name in AREA} | {name: name + suffix for name in RATES}
            cell = f"{row['unlearner']}.{row['attack']}"
            found |= {f"{cell}.{name}": float(row[key]) for key, name in names.items() if row.get(key) is not None}
    for row in result.get("discoveries") or []:
        if row["setting"] == setting:
            cell = f"{row['unlearner']}.{row['attack']}"
            found |= {f"{cell}.{name}": float(row[name]) for name in DISCOVERIES}
    for unlearner in dict.fromkeys(row["unlearner"] for row in result["utility"]):
        rows = [row for row in result["utility"] if row["unlearner"] == unlearner]
        for name in UTILITY:
            found[f"{unlearner}.utility.{name}"] = sum(float(row[name]) for row in rows) / len(rows)
    return found


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


def allowed_name(name: str) -> str:
    """Return a name with only the characters that MLflow allows."""
    return re.sub(r"[^\w\-. /]", "_", name)


def plan_hash(plan: Mapping[str, Any]) -> str:
    """Return a short hash of the resolved plan, the same for the same audit."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True, default=str).encode()).hexdigest()[:16]
