"""Noise votes: a member keeps its label under noise more often than reference models let expect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from audits.arrays import Floats
from audits.errors import BadInput
from audits.queries.access import Access
from audits.queries.boundary_walk import LabelFunction
from audits.queries.noise_votes import kept_share
from audits.tmia.answers import Answers, Grouped
from audits.tmia.attacks.base import ATTACKS, JudgeSettings, Reading
from audits.tmia.attacks.ranked import RankAttack
from audits.tmia.attacks.shadows import Verdict, everyone
from audits.tmia.p_values import check_level, rank_p


@dataclass(frozen=True)
class NoiseVotes:
    """Member if more noisy copies keep the label than a share ``level`` of reference models lets expect.

    After the random-noise attack of Choquette-Choo et al. (arXiv 2007.14321). Deviations: the same copies are put to
    all models, and each point has a threshold of its own, p ≤ ``level`` for the rank p-value among reference models, in
    place of one for all; ties count against membership, so a point that all models hold on to is never called one.
    ``sigma`` in units of the inputs; ``copies`` queries a point and model.
    """

    access: ClassVar[Access] = "labels"

    level: float = 0.05
    sigma: float = 0.1
    copies: int = 32

    def __post_init__(self) -> None:
        if not self.sigma > 0:
            raise BadInput(f"sigma is {self.sigma}; it must be above 0")
        if self.copies < 1:
            raise BadInput(f"copies is {self.copies}; it must be 1 or more")

    def ask(
        self,
        labels: LabelFunction,
        x: torch.Tensor,
        y: torch.Tensor,
        ids: ArrayLike,
        *,
        seed: int,
        value_range: tuple[float, float] | None = None,
        chunk: int = 128,
    ) -> Floats:
        """Return the share (K,) of noisy copies of ``x`` (K, D) that one model labels ``y`` (K,).

        Noise N(0, ``sigma``²) is drawn from (``seed``, point id) alone, ``ids`` (K,), so all models are asked about the
        same copies and a point's answer does not depend on the others; copies are clipped to ``value_range``. Asks
        ``copies`` labels a point, of ``chunk`` points at once.
        """
        return kept_share(
            labels, x, y, ids, sigma=self.sigma, copies=self.copies, seed=seed, value_range=value_range, chunk=chunk
        )

    def judge(self, shares: ArrayLike, reference: ArrayLike) -> Verdict:
        """Return the verdict on targets' ``shares`` (T, K), given those of reference models (n_ref, K)."""
        own, others = np.asarray(shares, np.float64), np.asarray(reference, np.float64)
        check_level(self.level, len(others))
        p = rank_p(own, others, larger_is_member=True)
        return Verdict(p <= self.level, 1 - p, everyone(p))


@ATTACKS.register("noise_votes")
@dataclass(frozen=True)
class NoiseVotesAttack(RankAttack):
    """Share of noisy copies that keep y*, ranked (``NoiseVotes``); ties cost power.

    Score: the share of ``audit.noise.copies`` copies x + σ·noise that the model calls y*; the same copies for all
    models.

    Source: after the random-noise attack of Choquette-Choo et al., arXiv 2007.14321.

    Deviations: each point has a threshold of its own, p ≤ beta for the rank p-value among reference models, in place of
    one for all; ties count against membership, so that a point that all models hold on to is never called one.

    Cost: ``audit.noise.copies`` labels a candidate and model; ``split.reference_models`` models, which serve all
    targets and candidates.

    Not for: much coverage: few points have a share that no reference model reaches.
    """

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[Reading, ...]] = ("votes",)

    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """Return candidates, the share of copies that keep y*, and queries a point."""
        labels = view.known_labels()
        return labels.rows, labels.known("votes"), labels.queries["votes"]
