"""The control of a GNQ audit of a given model: what are said to be its members are learnt no less than others."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.gnq.given.rows import SeparationRow
from orchestrator.judgement.controls import LEARNT
from orchestrator.judgement.rows import FAILED, FINDINGS, HELD, MISSING, Control

LOSS = "loss"


def learnt(setting: str, separation: Iterable[SeparationRow]) -> Control:
    """Return whether the members of a setting can be what its model was trained on.

    A model's loss at its own points may be as at others, and never larger. Missing where no other points were scored.
    """
    loss = next((row for row in separation if (row.setting, row.score) == (setting, LOSS)), None)
    if loss is None:
        why = "It is unknown how points that the model never saw compare."
        return LEARNT.row(FINDINGS, MISSING, setting, why)
    why = "The model’s loss is no larger at target.members than at points that it was not trained on."
    if failed := loss.auc.below(0.5):
        why = (
            "The model’s loss is larger at target.members than at other points: these are not the points, inputs or "
            "labels that it was trained on."
        )
    return LEARNT.row(FINDINGS, FAILED if failed else HELD, setting, why, attack=LOSS, evidence=loss.auc)
