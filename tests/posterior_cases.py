"""Evidence of posteriors for the slow forms of attacks, and how close both must be."""

from __future__ import annotations

from synthetic_evidence import make_evidence

from audits.attacks import ATTACKS
from audits.evidence import Evidence

TOLERANCE = 1e-9
K, M = 15, 8


def seen_by(name: str, seed: int = 0, *, kept: bool = False) -> Evidence:
    return make_evidence(seed, K, models=M // 2, kept=kept, kinds=ATTACKS[name].reads)[0]
