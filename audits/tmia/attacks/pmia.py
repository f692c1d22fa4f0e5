"""PMIA: the pragmatic attack, a hypothesis test about records with few neighbours (Long et al., EuroS&P 2020)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audits.errors import BadInput
from audits.queries.access import Access
from audits.tmia.answers import Answers, Grouped
from audits.tmia.attacks.base import ATTACKS, JudgeSettings, Reading
from audits.tmia.attacks.ranked import SmoothedAttack, confident
from audits.tmia.attacks.shadows import Verdict
from audits.tmia.p_values import check_level, smoothed_p


@dataclass(frozen=True)
class Pmia:
    """ "A Pragmatic Approach to Membership Inferences on Machine Learning Models", direct attack.

    A record is vulnerable if the expected number of its neighbours in the target's training set, E = neighbours among
    reference points · |D_target|/|D_ref| (``selectors.Neighbours``), is below ``rare``. p = F(L_target), F the smoothed
    distribution function of its losses under reference models; member if p ≤ ``level``. Deviations: our reference
    models are the reference models; F does not extrapolate and is never below 1/(n_ref + 1) (``p_values.smoothed_p``).
    """

    access: ClassVar[Access] = "posteriors"

    level: float = 0.05
    rare: float = 0.1

    def __post_init__(self) -> None:
        if not self.rare > 0:
            raise BadInput(f"rare is {self.rare}; it must be above 0 expected neighbours")

    def judge(self, loss: ArrayLike, reference: ArrayLike, expected: ArrayLike) -> Verdict:
        """Return the verdict on its own vulnerable records: others are not attacked and never called members.

        ``loss``: (T, K) of the targets, ``reference``: (n_ref, K) of reference models, natural logarithm; ``expected``:
        (K,) neighbours. ``score`` is 1 − p, of all candidates. Raises ``BadInput`` as ``p_values`` does.
        """
        own, others, few = (np.asarray(part, np.float64) for part in (loss, reference, expected))
        if own.ndim != 2 or few.shape != own.shape[1:]:
            raise BadInput(f"losses are {own.shape} and expected neighbours {few.shape}; give (T, K) and (K,)")
        check_level(self.level, len(others))
        p = smoothed_p(own, others, larger_is_member=False)
        attacked = few < self.rare
        return Verdict((p <= self.level) & attacked, 1 - p, attacked)


@ATTACKS.register("pmia")
@dataclass(frozen=True)
class PmiaAttack(SmoothedAttack):
    """PMIA (Long et al., EuroS&P 2020): smoothed p-value of the true loss, see :class:`Pmia`.

    Score: minus the loss; p = F(L_target), F the smoothed distribution function of the candidate's losses under
    reference models. Member if p ≤ beta.

    Source: Long et al., "A Pragmatic Approach to Membership Inferences on Machine Learning Models", EuroS&P 2020,
    direct attack.

    Deviations: it speaks about all candidates here; the records that the paper would attack are those of the selector
    ``neighbours``. F does not extrapolate and is never below 1/(n_ref + 1).

    Cost: posteriors at the candidates; ``split.reference_models`` models, which serve all targets and candidates.

    Not for: labels alone; β below 1/(n_ref + 1).
    """

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[Reading, ...]] = ("posterior",)

    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """Return candidates, minus the losses of true confidences, and queries a point."""
        return confident(view)
