"""Evidence of posteriors for the slow forms of attacks, and how close both must be."""

from __future__ import annotations

from audits.apollo.attacks import ATTACKS
from audits.apollo.evidence import Evidence
from tests.cases.synthetic_evidence import make_evidence

TOLERANCE = 1e-9
K, M = 15, 8


def seen_by(name: str, seed: int = 0, *, kept: bool = False) -> Evidence:
    return make_evidence(seed, K, models=M // 2, kept=kept, kinds=ATTACKS[name].reads)[0]
