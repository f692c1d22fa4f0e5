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

    Score: share of right labels minus the confidence of the validation models at the same inputs. The null comes from
    unlearned offline shadows of the other half of the pool.

    Source: Peng et al., arXiv 2405.16978: the smallest transferable perturbation that fools models which never saw the
    point.

    Deviations: the confidence breaks the paper's ties between points that were not fooled; two inputs, one a half, in
    place of one.

    Cost: 2 labels a point; ``split.offline_shadows`` models; gradient steps through them for each input.

    Not for: few offline shadows, some of which make the perturbation while the others validate it.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[str, ...]] = ("oslo",)

    def find(self, evidence: Evidence) -> Finding:
        return less_expected(evidence.walk("oslo"))
