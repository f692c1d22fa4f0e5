"""What older attacks read and return, and the simplest of them: Yeom's loss threshold, label gap and noise votes.

An older attack learns from shadow models, of which the attacker knows the members, or from contrast models. It judges
every target and candidate alike; which candidates count (Q) is for the caller to say. None takes a target's membership.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from audits.errors import BadInput
from audits.evidence.hop_skip_jump import Labels, clip
from audits.membership.p_values import check_level, log_loss, rank_p
from audits.oracles import Access
from audits.seeds import derive_seed, torch_generator

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Verdict:
    """``decision`` (T, K): called a member; ``score`` (T, K) float64: higher = more likely a member; ``attacked`` (K,):
    candidates about which the attack speaks, all unless it selects; for the others ``decision`` is False."""

    decision: Bools
    score: Floats
    attacked: Bools

    def __post_init__(self) -> None:
        if not np.isfinite(self.score).all():
            raise FloatingPointError("a score is not a number; a target or a shadow may have diverged")


@dataclass(frozen=True)
class ShadowRows:
    """What one shadow answers about points of which it is known whether it trained on them.

    ``posterior`` (N, classes), ``member`` (N,) bool, ``label`` (N,) int64: the true class, or in attacks II and III the
    shadow's own predicted one. Give equally many of either kind: learned attacks take the shares as prior.
    """

    posterior: NDArray[np.floating]
    member: Bools
    label: Ids

    def __post_init__(self) -> None:
        if self.posterior.ndim != 2 or not len(self.posterior) == len(self.member) == len(self.label):
            raise BadInput(
                f"shadow rows have posteriors {self.posterior.shape}, {len(self.member)} memberships and "
                f"{len(self.label)} labels; give (N, classes), N and N"
            )
        if not np.isfinite(self.posterior).all():
            raise FloatingPointError("a posterior of a shadow is not a number; the shadow may have diverged")


@dataclass(frozen=True)
class Yeom:
    """Member if the loss is below the mean training loss (Yeom et al., arXiv 1709.01604).

    Deviation: the paper's attacker knows the target's mean training loss; here it is the mean over shadows' members.
    """

    access: ClassVar[Access] = "posteriors"

    def judge(self, shadows: Sequence[ShadowRows], posterior: NDArray[np.floating], label: ArrayLike) -> Verdict:
        """Return the verdict on targets' ``posterior`` (T, K, classes) for classes ``label`` (K,) or (T, K)."""
        known = [losses(rows.posterior, rows.label)[rows.member] for rows in shadows]
        if sum(len(each) for each in known) == 0:
            raise BadInput("Yeom's threshold is the mean loss of shadows' members, but no shadow row is a member")
        found = losses(posterior, label)
        return Verdict(found < np.concatenate(known).mean(), -found, everyone(found))


@dataclass(frozen=True)
class LabelGap:
    """Member if the predicted label is the true one (Yeom et al., arXiv 1709.01604; "gap attack"). One query."""

    access: ClassVar[Access] = "labels"

    def judge(self, predicted: ArrayLike, label: ArrayLike) -> Verdict:
        """Return the verdict on targets' labels ``predicted`` (T, K) against true classes ``label`` (K,) or (T, K)."""
        right: Bools = np.asarray(predicted) == np.asarray(label)
        return Verdict(right, right.astype(np.float64), everyone(right))


@dataclass(frozen=True)
class NoiseVotes:
    """Member if more noisy copies keep the label than a share ``level`` of contrast models lets expect.

    After the random-noise attack of Choquette-Choo et al. (arXiv 2007.14321). Deviations: the same copies are put to
    all models, and each point has a threshold of its own, p ≤ ``level`` for the rank p-value among contrast models, in
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
        labels: Labels,
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
        points, shares = [int(point) for point in np.asarray(ids)], []
        for first in range(0, len(x), chunk):
            near = slice(first, first + chunk)
            draws = [
                torch.randn(self.copies, x.shape[1], generator=torch_generator(derive_seed(seed, "noise votes", point)))
                for point in points[near]
            ]
            asked = clip(x[near, None] + self.sigma * torch.stack(draws).to(x), value_range)
            said = labels(asked.flatten(0, 1)).reshape(-1, self.copies)
            shares.append((said == y[near, None]).double().mean(1))
        return torch.cat(shares).cpu().numpy()

    def judge(self, shares: ArrayLike, contrast: ArrayLike) -> Verdict:
        """Return the verdict on targets' ``shares`` (T, K), given those of contrast models (n_ref, K)."""
        own, others = np.asarray(shares, np.float64), np.asarray(contrast, np.float64)
        check_level(self.level, len(others))
        p = rank_p(own, others, larger_is_member=True)
        return Verdict(p <= self.level, 1 - p, everyone(p))


def losses(posterior: NDArray[np.floating], label: ArrayLike) -> Floats:
    """Return −log p_y (...) in float64 of ``posterior`` (..., classes) for classes ``label``, which is broadcast."""
    classes = np.broadcast_to(np.asarray(label), posterior.shape[:-1])
    return log_loss(np.take_along_axis(posterior, classes[..., None], axis=-1)[..., 0])


def everyone(judged: NDArray[np.generic]) -> Bools:
    """Return (K,) True for (T, K): the attack speaks about every candidate."""
    return np.ones(judged.shape[1], dtype=np.bool_)
