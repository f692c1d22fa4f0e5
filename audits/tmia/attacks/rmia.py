"""RMIA: is a candidate likelier under the model than the other candidates are (Zarifzadeh et al. 2024)?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from audits.arrays import Floats
from audits.queries.access import Access
from audits.signals.loss import losses
from audits.signals.rmia import dominance, log_mean
from audits.tmia.answers import JUDGED, Answers
from audits.tmia.attacks.base import ATTACKS, Attack, JudgeSettings, Reading, Ruling
from audits.tmia.shared_pool import corrected_p, raw_level


@ATTACKS.register("rmia")
@dataclass(frozen=True)
class RMIA(Attack):
    """RMIA offline (Zarifzadeh et al., arXiv 2312.03262) with the reference models, none of which saw a candidate.

    Score: the mean over z of LR/(LR + γ), γ = 1, LR(x, z) = (p(x|θ)/p(x)) / (p(z|θ)/p(z)), p being the confidence of y*
    and p(x) its mean over the reference models (of a reference model: over the others). Where TMIA ranks a candidate
    among the answers of reference models at the same candidate, this sets all candidates of a model against each other.
    p-value: share of all pairs of a reference model and a candidate with a statistic as large, corrected for the pool
    that reference models share.

    Source: Zarifzadeh et al., arXiv 2312.03262.

    Deviations: z runs over the candidates, x among them, as targets answer no others (half of them are members of a
    target, which lowers its statistics against those of reference models: the test is the more careful, AUCs do not
    change); p(x) is not raised to what models inside would give, one factor for all x; the soft form of the paper's
    share of z.

    Cost: posteriors at the candidates; ``split.reference_models`` models, which serve all targets and candidates.

    Not for: a rate for each candidate, or for selected ones: the promised one is that over all candidates. Under
    selections by reference loss null models were called members five times as often.
    """

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[Reading, ...]] = ("posterior",)
    has_level: ClassVar[bool] = True
    pooled: ClassVar[bool] = True

    def find(self, view: Answers, settings: JudgeSettings, seed: int) -> Ruling:
        """Return the ruling by pooled p ≤ beta."""
        seen = view.known_posteriors()
        own = {group: -losses(seen.posterior[group], seen.star[group]) for group in seen.posterior}
        reference = own["reference"]
        null = np.sort(np.concatenate([compared(row, rest) for row, rest in each_by_others(reference)]))
        statistic = {
            group: np.stack([compared(row, reference) for row in own[group]])
            if len(own[group])
            else np.zeros((0, reference.shape[1]))
            for group in JUDGED
        }
        raw = {group: share_as_large(values, null) for group, values in statistic.items()}
        level = raw_level(settings.beta, settings.pool_sets)
        return Ruling(
            rows=np.arange(reference.shape[1]),
            statistic=statistic,
            p={group: corrected_p(p, settings.pool_sets) for group, p in raw.items()},
            decision={group: p <= level for group, p in raw.items()},
            queries=1,
        )


def compared(own: Floats, reference: Floats) -> Floats:
    """Return the statistic (K,) of a model by its log p (K,) and that of ``reference`` models (n, K)."""
    ratio = own - log_mean(reference, np.ones_like(reference, dtype=np.bool_))
    return dominance(ratio, ratio)


def each_by_others(reference: Floats) -> list[tuple[Floats, Floats]]:
    """Return each reference model's log p (K,) with that of the others (n − 1, K); of a single one with its own."""
    if len(reference) < 2:
        return [(row, reference) for row in reference]
    return [(row, np.delete(reference, index, axis=0)) for index, row in enumerate(reference)]


def share_as_large(values: Floats, null: Floats) -> Floats:
    """Return (1 + null values at least as large) / (1 + null values) of ``values``, by ``null`` (n,) ascending."""
    above = len(null) - np.searchsorted(null, values, side="left")
    found: Floats = (1 + above) / (1 + len(null))
    return found
