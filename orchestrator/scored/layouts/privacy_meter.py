"""ML Privacy Meter: ``LOG_DIR/report/exp/attack_result_N.npz``, one target model N a file.

Vectors ``scores`` (large = member) and ``memberships`` (bool) beside ``fpr``, ``tpr``, ``auc``, ``one_tenth_fpr`` and
``zero_fpr``. Points are in the order of the data set, the same in all files. ``attack_result_average.npz`` holds the
rows of all targets end to end and does not tell them apart. Source: ``get_audit_results`` and
``get_average_audit_results`` in ``audit.py`` of github.com/privacytrustlab/ml_privacy_meter, April 2025.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from audits.errors import BadInput
from orchestrator.scored.columns import Part
from orchestrator.scored.files import Arrays
from orchestrator.scored.tabular import column_of_array, vector

ATTACK = "Privacy Meter"
KEYS = ("scores", "memberships", "fpr", "tpr")
AVERAGE = "average"


def matches(arrays: Arrays) -> bool:
    """Say whether arrays are a result of Privacy Meter."""
    return all(key in arrays for key in KEYS)


def parts(arrays: Arrays, path: Path) -> list[Part]:
    """Return the attack of a result."""
    scores, member = (vector(arrays[name], name, path) for name in ("scores", "memberships"))
    if len(scores) != len(member):
        raise BadInput(f"{path}: {len(scores)} scores for {len(member)} memberships; needed: one each")
    table = pa.table(
        {"scores": column_of_array(scores, "scores", path), "memberships": member, "point": np.arange(len(scores))}
    )
    point = "" if path.stem.endswith(AVERAGE) else "point"
    return [Part(table, str(path), "memberships", {ATTACK: "scores"}, point=point)]


def notes(path: Path) -> list[str]:
    """Return what a reader must know of a file."""
    if not path.stem.endswith(AVERAGE):
        return []
    return [
        f"{path.name} holds all targets end to end and does not tell them apart: its intervals treat them as one; give "
        "the files attack_result_0.npz, attack_result_1.npz … instead"
    ]
