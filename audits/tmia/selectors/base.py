"""Selection of vulnerable candidates: scores from reference models alone, and rules that choose by them.

Only chosen candidates (Q) are attacked; about the others the answer is "no decision". No selector reads a target, and
no rule reads membership. Source: TMIA, Journal on Communications 42(10), 2021 (``kmeans``); others beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from audits.arrays import Bools, Floats
from audits.errors import BadInput
from audits.registry import Registry

if TYPE_CHECKING:
    import torch

SELECTORS: Registry[type[Selector]] = Registry("selector", "audits.tmia.selectors")


@dataclass(frozen=True)
class Case:
    """Everything that selectors may read of K candidates and R reference samples, the attacker's points that were
    drawn.

    ``features``: φ of all, candidates first: (K + R, D), or column blocks that can be read again (``Features``);
    ``loss`` (n_ref, K): reference models' losses on candidates; ``reference_loss`` (n_ref, R) and ``reference_outside``
    (n_ref, R): the same on reference samples, and which models did not train on which; ``classes`` of the models;
    ``uniqueness`` (K,) and ``reference_uniqueness`` (any number): how far the gradients of candidates and of reference
    samples are not made up by those of reference models' training points. ``train_size``: points a target trains on;
    ``seed``. What a selector does not read may be None.
    """

    candidates: int
    classes: int
    train_size: int
    seed: int
    features: torch.Tensor | Iterable[torch.Tensor] | None = None
    loss: Floats | None = None
    reference_loss: Floats | None = None
    reference_outside: Bools | None = None
    uniqueness: Floats | None = None
    reference_uniqueness: Floats | None = None

    def __post_init__(self) -> None:
        if self.loss is not None and self.loss.shape[1:] != (self.candidates,):
            raise BadInput(
                f"losses have shape {self.loss.shape}; give (reference models, {self.candidates} candidates)"
            )
        if self.reference_loss is not None and self.reference_outside is not None:
            shapes = self.reference_loss.shape, self.reference_outside.shape
            if shapes[0] != shapes[1]:
                raise BadInput(
                    f"reference_loss has shape {shapes[0]} and reference_outside {shapes[1]}; give equal ones"
                )

    def known_features(self) -> torch.Tensor | Iterable[torch.Tensor]:
        """Return the features or say that they are missing."""
        if self.features is None:
            raise BadInput(
                "this selector reads features, but none were gathered; gather them or select by reference_loss"
            )
        return self.features


@dataclass(frozen=True)
class Scores:
    """``candidates`` (K,): higher = more vulnerable; ``reference``: the same of reference samples (any number), which
    thresholds may be read off, or None where it is not known."""

    candidates: Floats
    reference: Floats | None = None


@dataclass(frozen=True)
class Selector(ABC):
    """Scores candidates by what reference models say of them; its fields are its settings."""

    name: ClassVar[str]

    @abstractmethod
    def select(self, case: Case) -> Scores:
        """Return scores (K,), higher = more vulnerable; equal cases give equal scores."""


def chosen(
    scores: Scores, *, alpha: float | None = None, size: int | None = None, quantile: float | None = None
) -> Bools:
    """Return the chosen candidates Q (K,) by exactly one rule.

    ``alpha``: score above it; ``quantile``: score above this quantile of reference samples; ``size``: the so many
    largest, of equal ones the first. Infinite scores are always chosen. Raises ``BadInput``.
    """
    if (alpha is None) + (size is None) + (quantile is None) != 2:
        raise BadInput(f"alpha is {alpha}, size {size} and quantile {quantile}; give exactly one of the three")
    score = scores.candidates
    if size is not None:
        if not 0 <= size <= len(score):
            raise BadInput(f"size is {size}, but there are {len(score)} candidates; allowed: 0 to {len(score)}")
        largest = np.zeros(len(score), dtype=np.bool_)
        largest[np.argsort(-score, kind="stable")[:size]] = True
        return largest | np.isposinf(score)
    if quantile is not None:
        if scores.reference is None:
            raise BadInput("this selector has no scores of reference samples to take a quantile of; give alpha or size")
        alpha = quantile_of(scores.reference, quantile)
    assert alpha is not None, "one of the three is given"
    above: Bools = score > alpha
    return above


def quantile_of(reference_distance: ArrayLike, q: float) -> float:
    """Return the threshold α that a share 1 − q of reference samples exceeds; reads no candidate and no membership."""
    known = np.asarray(reference_distance, dtype=np.float64)
    if not 0 < q < 1:
        raise BadInput(f"the quantile of alpha is {q}; allowed: above 0 and below 1, e.g. 0.99")
    if known.size == 0 or np.isnan(known).any():
        raise BadInput(
            "alpha is a quantile of the reference samples, but there are none (or NaN); give an absolute alpha"
        )
    return float(np.quantile(known, q))
