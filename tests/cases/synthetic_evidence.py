"""Evidence made of synthetic answers (``audits.conformance.apollo_evidence``), and what tests read off it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from audits.apollo.attacks import ATTACKS
from audits.apollo.evidence import Evidence
from audits.conformance.apollo_evidence import make_evidence
from audits.conformance.apollo_walks import Bools, make_walks

__all__ = ["auc", "evidence_for", "make_evidence", "make_walks"]


def evidence_for(name: str, seed: int, candidates: int = 40, **more: object) -> Evidence:
    """Return synthetic evidence of the kinds that an attack reads."""
    return make_evidence(seed, candidates, kinds=ATTACKS[name].reads, **more)[0]


def auc(score: NDArray[np.float64], forgotten: Bools) -> float:
    """Return the share of pairs (forgotten, unseen) in the right order, ties counting one half."""
    high, low = score[forgotten][:, None], score[~forgotten][None]
    return float(((high > low) + 0.5 * (high == low)).mean())
