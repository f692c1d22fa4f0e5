"""GMIA: the three adversaries of ML-Leaks (Salem et al., NDSS 2019, arXiv 1806.01246)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Floats
from audits.errors import BadInput
from audits.queries.access import Access
from audits.tmia.answers import Posteriors
from audits.tmia.attacks.base import ATTACKS, JudgeSettings
from audits.tmia.attacks.network import Network
from audits.tmia.attacks.shadows import (
    SHADOWS,
    Asked,
    PosteriorAttack,
    ShadowRows,
    Verdict,
    balanced_shadows,
    everyone,
    shadow_rows,
)


@dataclass(frozen=True)
class Gmia1:
    """Adversary 1: one shadow model of the target's structure and data, and a network on the ``top`` largest posteriors
    in falling order. Trained on the shadow, asked about the targets (commit 548b44b of the public code; b5a57fb has the
    two the other way round). Member if the network finds that likelier than not.
    """

    access: ClassVar[Access] = "posteriors"

    top: int = 3
    network: Network = field(default_factory=Network)

    def judge(self, shadow: ShadowRows, posterior: NDArray[np.floating], seed: int) -> Verdict:
        """Return the verdict on targets' ``posterior`` (T, K, classes); the score is the log-odds."""
        return learned([shadow], posterior, self.top, self.network, seed)


@dataclass(frozen=True)
class Gmia2:
    """Adversary 2: as adversary 1, with several shadows whose recipe, structure or data, classes too, differ from the
    target's: whatever the caller gives. A model of fewer classes than ``top`` has zeros in their place.
    """

    access: ClassVar[Access] = "posteriors"

    top: int = 3
    network: Network = field(default_factory=Network)

    def judge(self, shadows: Sequence[ShadowRows], posterior: NDArray[np.floating], seed: int) -> Verdict:
        """Return the verdict on targets' ``posterior`` (T, K, classes); the score is the log-odds."""
        return learned(shadows, posterior, self.top, self.network, seed)


@dataclass(frozen=True)
class Gmia3:
    """Adversary 3: nothing is trained; member if the largest posterior exceeds a threshold.

    The threshold is the smallest that a share of at most ``level`` of shadows' non-members exceeds. Deviation: the
    paper queries the target with random inputs and takes their top share; non-members of shadows promise a
    false-positive rate and cost no query.
    """

    access: ClassVar[Access] = "posteriors"

    level: float = 0.05

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise BadInput(f"level is {self.level}; allowed: above 0 and below 1")

    def judge(self, shadows: Sequence[ShadowRows], posterior: NDArray[np.floating]) -> Verdict:
        """Return the verdict on targets' ``posterior`` (T, K, classes); the score is the largest posterior."""
        if all(rows.member.all() for rows in shadows):
            raise BadInput("the threshold of adversary 3 is taken from shadows' non-members, but there are none")
        unseen = np.sort(np.concatenate([rows.posterior[~rows.member].max(1) for rows in shadows]).astype(np.float64))
        threshold = unseen[-1 - int(self.level * unseen.size + 1e-9)]
        score: Floats = posterior.max(-1).astype(np.float64)
        return Verdict(score > threshold, score, everyone(score))


@ATTACKS.register("gmia1")
@dataclass(frozen=True)
class Gmia1Attack(PosteriorAttack):
    """GMIA, adversary 1 (Salem et al., NDSS 2019): the one shadow is reference model 0.

    Score: the probability of "member" by a network of 64 ReLU units and a softmax of 2 on the three largest posteriors
    in falling order.

    Source: Salem et al., "ML-Leaks", NDSS 2019, arXiv 1806.01246, adversary 1.

    Deviations: the network learns from the shadow and is tested on targets, where the public code has it reversed.

    Cost: posteriors at the candidates; one fit of under a second; ``split.reference_models`` models, which serve all
    targets and candidates.

    Not for: normally fitted models, on which learned attacks are near chance (TMIA's paper, Fig. 1), and a promised
    rate: it makes none.
    """

    def verdict(self, seen: Posteriors, asked: Asked, settings: JudgeSettings, seed: int) -> Verdict:
        """Return the verdict on what ``asked`` models answer; the score is the log-odds."""
        return Gmia1().judge(balanced_shadows(seen, 1, seed)[0], asked.posterior, seed)


@ATTACKS.register("gmia2")
@dataclass(frozen=True)
class Gmia2Attack(PosteriorAttack):
    """GMIA, adversary 2, as far as the population allows: the shadows are the first ``SHADOWS`` reference models.

    Score: the probability of "member" by a network of 64 ReLU units and a softmax of 2 on the three largest posteriors
    in falling order.

    Source: Salem et al., "ML-Leaks", NDSS 2019, arXiv 1806.01246, adversary 2.

    Deviations: a stand-in. The paper's adversary 2 knows neither the target's structure nor its data and uses shadows
    of others, but all reference models share the target's. It is adversary 1 with more shadows.

    Cost: posteriors at the candidates; one fit of under a second; ``split.reference_models`` models, which serve all
    targets and candidates.

    Not for: a claim about adversary 2, and a promised rate: it makes none.
    """

    def verdict(self, seen: Posteriors, asked: Asked, settings: JudgeSettings, seed: int) -> Verdict:
        """Return the verdict on what ``asked`` models answer; the score is the log-odds."""
        return Gmia2().judge(balanced_shadows(seen, SHADOWS, seed), asked.posterior, seed)


@ATTACKS.register("gmia3")
@dataclass(frozen=True)
class Gmia3Attack(PosteriorAttack):
    """GMIA, adversary 3: a threshold on the largest posterior, from reference models' non-members, at level beta.

    Score: the largest posterior.

    Source: Salem et al., "ML-Leaks", NDSS 2019, arXiv 1806.01246, adversary 3.

    Deviations: the threshold comes from reference models' non-members, at level beta.

    Cost: posteriors at the candidates; no fit; ``split.reference_models`` models, which serve all targets and
    candidates.

    Not for: selected candidates: one threshold for all points knows nothing of hard ones.
    """

    has_level: ClassVar[bool] = True
    pooled: ClassVar[bool] = True

    def verdict(self, seen: Posteriors, asked: Asked, settings: JudgeSettings, seed: int) -> Verdict:
        """Return the verdict on what ``asked`` models answer; the score is the largest posterior."""
        return Gmia3(settings.beta).judge(shadow_rows(seen, ~seen.shadow_member), asked.posterior)


def learned(
    shadows: Sequence[ShadowRows], posterior: NDArray[np.floating], top: int, network: Network, seed: int
) -> Verdict:
    """Return the verdict of a network trained on the ``top`` posteriors of all ``shadows`` together."""
    if top < 1:
        raise BadInput(f"top is {top}; it must be 1 or more posteriors")
    if len(shadows) == 0:
        raise BadInput("no shadow is given; the attack network needs 1 or more")
    rows = np.concatenate([largest(shadow.posterior, top) for shadow in shadows])
    judge = network.fitted(rows, np.concatenate([shadow.member for shadow in shadows]), seed)
    score = judge(largest(posterior, top))
    return Verdict(score > 0, score, everyone(score))


def largest(posterior: NDArray[np.floating], top: int) -> Floats:
    """Return the ``top`` largest of each row (..., top) in falling order; zeros where there are fewer classes."""
    kept = -np.sort(-posterior.astype(np.float64), axis=-1)[..., :top]
    missing = [(0, 0)] * (kept.ndim - 1) + [(0, top - kept.shape[-1])]
    return np.pad(kept, missing)
