"""LiRA by an oracle: true confidences of models that trained on each candidate, and of models that did not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats
from audits.errors import BadInput
from audits.queries.access import Access
from audits.signals.likelihood_ratio import moments
from audits.tmia.answers import Answers, Posteriors
from audits.tmia.attacks.base import ATTACKS, Attack, JudgeSettings, Reading, Ruling
from audits.tmia.attacks.shadows import Verdict, everyone, ruled
from audits.tmia.design import Group

SMALLEST = 1e-7
"""Confidences are cut at this and at 1 less this, as losses are."""


@ATTACKS.register("lira_oracle")
@dataclass(frozen=True)
class LiraOracle(Attack):
    """Likelihood ratio of log(p/(1 − p)), p the confidence of y* (after Carlini et al., arXiv 2112.03570, online).

    Question: How much could an attack find that reads one confidence, if it knew models inside?

    Score: log N(φ; μ_in, σ²) − log N(φ; μ_out, σ²), φ = log(p/(1 − p)). The models outside are the reference models and
    the other targets that did not train on the candidate; the models inside are the other targets that did, which no
    attacker has; for null models, all targets. Member if the ratio is above 1.

    Source: after Carlini et al., arXiv 2112.03570.

    Deviations: one variance a candidate, that of the models outside, serves both sides, and the shift between the
    sides, in units of its root, is drawn towards the mean shift as far as few models inside make it uncertain
    (empirical Bayes). Without that, a dozen models inside make the ratio worse than a rank.

    Cost: posteriors at the candidates of all targets; ``split.reference_models`` models, which serve all targets and
    candidates.

    Not for: a claim about an attacker: not an attack but a bound for those that read one confidence. No rate is
    promised.
    """

    access: ClassVar[Access] = "oracle"
    reads: ClassVar[tuple[Reading, ...]] = ("posterior",)

    def find(self, view: Answers, settings: JudgeSettings, seed: int) -> Ruling:
        """Return the ruling; the statistic is the log likelihood ratio. BadInput with fewer than four targets."""
        member, seen = view.known_truth(), view.known_posteriors()
        if len(member) < 4:
            raise BadInput(
                f"the oracle needs other targets that trained on a candidate and others; {len(member)} targets are too "
                "few, give split.targets 4 or more"
            )
        target, null = confidences(seen, "target"), confidences(seen, "null")
        values = np.concatenate([target, confidences(seen, "reference")])
        inside = np.concatenate([member, np.zeros((len(values) - len(member), member.shape[1]), dtype=np.bool_)])
        others = np.ones(len(values), dtype=np.bool_)
        rows = []
        for index, asked in enumerate(target):
            others[index] = False
            rows.append(ratio(asked, values[others], inside[others]))
            others[index] = True
        rows += [ratio(asked, values, inside) for asked in null]
        score = np.stack(rows)
        return ruled(Verdict(score > 0, score, everyone(score)), np.arange(score.shape[1]), len(target))


def ratio(asked: Floats, values: Floats, inside: Bools) -> Floats:
    """Return the log ratio (K,) of ``asked`` (K,) by ``values`` (m, K) of models that are ``inside`` (m, K) or not.

    It is d·z − ½·d², z the distance from the mean outside in units of the standard deviation there, d the shift.
    """
    mean, variance = moments(values, ~inside, pooled=False)
    z = (np.concatenate([values, asked[None]]) - mean) / np.sqrt(variance)
    d = shrunk(z[:-1], inside)
    found: Floats = d * z[-1] - d**2 / 2
    return found


def shrunk(z: Floats, inside: Bools) -> Floats:
    """Return the shift (K,) of models ``inside`` (m, K) from the others, whose ``z`` (m, K) have mean 0, variance 1.

    Observed shifts have a variance of 1/n_in + 1/n_out about the true ones, and these one, τ², about their mean; the
    estimate weighs both. A candidate without models inside has the mean shift.
    """
    count = inside.sum(0)
    seen = np.where(inside, z, 0.0).sum(0) / np.maximum(count, 1)
    noise = 1 / np.maximum(count, 1) + 1 / np.maximum((~inside).sum(0), 1)
    known = count > 0
    centre = np.average(seen[known], weights=1 / noise[known]) if known.any() else 0.0
    spread = max(0.0, float(((seen[known] - centre) ** 2 - noise[known]).mean())) if known.any() else 0.0
    found: Floats = centre + np.where(known, spread / (spread + noise), 0.0) * (seen - centre)
    return found


def confidences(seen: Posteriors, group: Group) -> NDArray[np.float64]:
    """Return log(p/(1 − p)) (models, K) of the confidences of y*."""
    star = seen.star[group][..., None]
    p = np.take_along_axis(seen.posterior[group], star, axis=-1)[..., 0].astype(np.float64)
    p = np.clip(p, SMALLEST, 1 - SMALLEST)
    found: NDArray[np.float64] = np.log(p) - np.log1p(-p)
    return found
