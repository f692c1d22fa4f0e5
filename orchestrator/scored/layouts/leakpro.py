"""LeakPro: ``OUTPUT/data_objects/ATTACK_ID.json``, one attack on one target model.

An object with, among rates and counts, ``result_name``, ``result_type`` ("MIAResult"), ``signal_values`` (one number a
point, large = member; null for attacks that only decide) and ``true_labels`` (1: member). Points stand in the order of
the audit's data, the same for all attacks of one audit. Source: ``MIAResult.save`` in
``leakpro/reporting/mia_result.py`` and ``MIAResultSchema`` in ``leakpro/schemas.py`` of
github.com/aidotse/LeakPro, June 2026.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from audits.errors import BadInput
from orchestrator.scored.columns import Part
from orchestrator.scored.tabular import column_of_list

KEYS = ("result_type", "signal_values", "true_labels")


def matches(value: Any) -> bool:
    """Say whether a JSON value is a result of LeakPro."""
    return isinstance(value, Mapping) and all(key in value for key in KEYS)


def parts(value: Mapping[str, Any], path: Path) -> list[Part]:
    """Return the attack of a result."""
    signals, labels = value["signal_values"], value["true_labels"]
    name = str(value.get("result_name") or path.stem)
    if not signals:
        raise BadInput(f"{path}: {name} has no signal_values: an attack that only decides has no scores to judge")
    if not isinstance(signals, list) or not isinstance(labels, list):
        raise BadInput(f"{path}: signal_values and true_labels must be lists, one value a point")
    if len(signals) != len(labels):
        raise BadInput(f"{path}: {len(signals)} signal_values for {len(labels)} true_labels; needed: one each")
    table = pa.table(
        {
            "signal": column_of_list(signals, "signal_values", path),
            "member": column_of_list(labels, "true_labels", path),
            "point": np.arange(len(labels)),
        }
    )
    return [Part(table, str(path), "member", {name: "signal"}, point="point")]
