"""Details about a given target: what attacks say with pairs of shadows left out, and what is told without the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from audits.mia.attacks import MIA_ATTACKS
from audits.seeds import derive_seed
from audits.statistics.roc import auc
from audits.targets.blind import blind_auc

if TYPE_CHECKING:
    from audits.mia.answers import Case
    from orchestrator.mia.design import MiaDesign


def without_model(design: MiaDesign, case: Case) -> dict[str, Any]:
    """Return how well members are told from non-members of the pool by inputs and labels, with its interval."""
    inputs, member = case.inputs, design.models_judged(0)[0].half
    assert inputs is not None, "inputs are read with the answers"
    seed = derive_seed(design.plan.seed, "mia blind")
    found = blind_auc(inputs.x, inputs.labels, member, seed, design.plan.audit.level)
    return {"points": len(member), **dict(zip(("auc", "auc_low", "auc_high"), found, strict=True))}


def without_pairs(design: MiaDesign, case: Case, attack: str) -> list[dict[str, Any]]:
    """Return AUC and rates of an attack by each judged model, without each pair of the shadows in turn.

    They are what intervals over shadows are made of, and no shadow is trained for them. Nothing of attacks without
    shadows.
    """
    needed, shadows = MIA_ATTACKS[attack].shadows, design.plan.split.shadows
    if not needed or shadows - 2 < needed:
        return []
    half, rates = np.stack([model.half for model in design.models_judged(0)]), design.plan.audit.fpr
    rows: list[dict[str, Any]] = [
        {"model": row, "auc": [], "calls": [{"fpr": rate, "inside": [], "outside": []} for rate in rates]}
        for row in range(len(half))
    ]
    for pair in range(shadows // 2):
        found = MIA_ATTACKS[attack]().judge(case.without_pair(pair))
        calls = [found.decide(rate) for rate in rates]
        for row, member in zip(rows, half[:, found.points], strict=True):
            row["auc"].append(auc(found.score[row["model"]], member))
            for told, call in zip(row["calls"], calls, strict=True):
                told["inside"].append(float(call[row["model"]][member].mean()))
                told["outside"].append(float(call[row["model"]][~member].mean()))
    return [{"attack": attack, **row} for row in rows]
