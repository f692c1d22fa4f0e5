"""GMIA: the three adversaries of ML-Leaks (Salem et al., NDSS 2019, arXiv 1806.01246)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.membership.simple import Bools, Floats, ShadowRows, Verdict, everyone
from audits.models import make_model
from audits.oracles import Access
from audits.training.loop import logits, train_model
from audits.training.recipe import Recipe

Judge = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Network:
    """The learned part: ``hidden`` ReLU units, softmax of 2, trained with Adam on cross-entropy.

    64 units are the paper's; learning rate and epochs those of its public code, whose batches have 10 rows.
    """

    hidden: int = 64
    epochs: int = 50
    learning_rate: float = 1e-2
    batch_size: int = 64

    def fitted(self, rows: Floats, member: Bools, seed: int) -> Judge:
        """Return the log-odds of "member" (...,) of rows (..., F) by a network trained on ``rows`` (N, F), ``member``.

        Equal seeds give equal networks. Raises ``BadInput`` where members or non-members are missing.
        """
        if len(np.unique(member)) < 2:
            raise BadInput(
                "an attack network learns from members and non-members of shadows; rows of one kind are missing"
            )
        recipe = Recipe(
            optimizer="adam",
            learning_rate=self.learning_rate,
            epochs=self.epochs,
            batch_size=self.batch_size,
            weight_decay=0.0,
        )
        shape = rows.shape[1:]
        data = TensorSet(torch.from_numpy(rows.astype(np.float32)), torch.from_numpy(member.astype(np.int64)))
        architecture = make_model("mlp", {"hidden": [self.hidden]})
        network = train_model(lambda init: architecture.build(shape, 2, init), data, recipe, seed)

        def judge(asked: Floats) -> Floats:
            flat = torch.from_numpy(asked.reshape(-1, *shape).astype(np.float32))
            outside, inside = logits(network, flat).double().unbind(1)
            found: Floats = (inside - outside).numpy().reshape(asked.shape[:-1])
            return found

        return judge


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
