"""Details about a given target: what attacks say with pairs of shadows left out, and what is told without the model."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.mia.attacks import MIA_ATTACKS
from audits.seeds import derive_seed
from audits.statistics.roc import auc
from audits.targets.blind import blind_test

if TYPE_CHECKING:
    from audits.arrays import Floats
    from audits.mia.answers import Case
    from orchestrator.mia.design import MiaDesign


def without_model(design: MiaDesign, case: Case) -> dict[str, Any]:
    """Return how well members are told from non-members of the pool by inputs, labels and shadows without them."""
    inputs, member = case.inputs, design.models_judged(0)[0].half
    assert inputs is not None, "inputs are read with the answers"
    seed = derive_seed(design.plan.seed, "mia blind")
    found = blind_test(inputs.x, inputs.labels, member, seed, design.plan.audit.level, said_unseen(case))
    return {"points": len(member), **asdict(found), "differ": found.differ}


def said_unseen(case: Case) -> Floats | None:
    """Return what shadows that did not see a point say of its class, on average (N, 2): p and log p; None without any.

    Chance decides which points a shadow saw, so that it tells members from others only by what they are.
    """
    if case.shadows is None or case.half is None or case.half.all(0).any():
        return None
    log_p, unseen = case.shadows.log_p, ~case.half
    told = [np.where(unseen, part, 0.0).sum(0) / unseen.sum(0) for part in (np.exp(log_p), log_p)]
    return np.column_stack(told).astype(np.float64)


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
