"""The control of a GNQ audit of a given model: what are said to be its members are learnt no less than others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def not_learnt(document: Mapping[str, Any], setting: str) -> str | None:
    """Return why the members of a setting of a result cannot be what its model was trained on, "" if they can.

    A model's loss at its own points may be as at others, and never larger. None where no other points were scored.
    """
    rows = (row for row in document["separation"] if (row["setting"], row["score"]) == (setting, "loss"))
    loss = next(rows, None)
    if loss is None:
        return None
    if loss["auc_high"] is not None and loss["auc_high"] < 0.5:
        ends = f"AUC {loss['auc']:.3f} [{loss['auc_low']:.3f}, {loss['auc_high']:.3f}]"
        return (
            f"the model's loss is larger at target.members than at other points ({ends}): these are not the points, "
            "inputs or labels that it was trained on"
        )
    return ""
