"""OSLO: one query that fools models which never saw the candidate (Peng et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.apollo.attacks.base import ATTACKS, Attack, Finding
from audits.apollo.attacks.surplus import less_expected
from audits.apollo.evidence.parts import Evidence
from audits.queries.access import Access


@ATTACKS.register("oslo")
@dataclass(frozen=True)
class Oslo(Attack):
    """OSLO (Peng et al., arXiv 2405.16978), strictly offline: one label per half of the shadows, two in all, no fit.

    Score: share of right labels minus the confidence of the validation models, which breaks the paper's ties between
    points that were not fooled. The null comes from unlearned offline shadows of the other half of the pool.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("oslo",)

    def find(self, evidence: Evidence) -> Finding:
        return less_expected(evidence.walk("oslo"))
