"""Which candidates look vulnerable: scores from contrast models alone, and rules that choose by them.

Only chosen candidates (Q) are attacked; about the others the answer is "no decision". No selector reads a target, and
no rule reads membership. Source: TMIA, Journal on Communications 42(10), 2021 (``kmeans``); others beside it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from audits.errors import BadInput
from audits.membership.anomalies import MAX_ITER, RESTARTS, k_means, k_means_streamed, quantile_of
from audits.registry import Registry

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ids = NDArray[np.int64]

SELECTORS: Registry[type[Selector]] = Registry("selector")


@dataclass(frozen=True)
class Case:
    """What selectors may read of K candidates and R contrast samples, the attacker's points that contrast models drew.

    ``features``: φ of all, candidates first: (K + R, D), or column blocks that can be read again (``Features``);
    ``loss`` (n_ref, K): contrast models' losses on candidates; ``contrast_loss`` (n_ref, R) and ``contrast_outside``
    (n_ref, R): the same on contrast samples, and which models did not train on which; ``classes`` of the models;
    ``uniqueness`` (K,) and ``contrast_uniqueness`` (any number): how far the gradients of candidates and of contrast
    samples are not made up by those of contrast models' training points. ``train_size``: points a target trains on;
    ``seed``. What a selector does not read may be None.
    """

    candidates: int
    classes: int
    train_size: int
    seed: int
    features: torch.Tensor | Iterable[torch.Tensor] | None = None
    loss: Floats | None = None
    contrast_loss: Floats | None = None
    contrast_outside: Bools | None = None
    uniqueness: Floats | None = None
    contrast_uniqueness: Floats | None = None

    def __post_init__(self) -> None:
        if self.loss is not None and self.loss.shape[1:] != (self.candidates,):
            raise BadInput(f"losses have shape {self.loss.shape}; give (contrast models, {self.candidates} candidates)")
        if self.contrast_loss is not None and self.contrast_outside is not None:
            shapes = self.contrast_loss.shape, self.contrast_outside.shape
            if shapes[0] != shapes[1]:
                raise BadInput(f"contrast_loss has shape {shapes[0]} and contrast_outside {shapes[1]}; give equal ones")

    def known_features(self) -> torch.Tensor | Iterable[torch.Tensor]:
        """Return the features or say that they are missing."""
        if self.features is None:
            raise BadInput(
                "this selector reads features, but none were gathered; gather them or select by contrast_loss"
            )
        return self.features


@dataclass(frozen=True)
class Scores:
    """``candidates`` (K,): higher = more vulnerable; ``contrast``: the same of contrast samples (any number), which
    thresholds may be read off, or None where it is not known."""

    candidates: Floats
    contrast: Floats | None = None


@dataclass(frozen=True)
class Selector(ABC):
    """Scores candidates by what contrast models say of them; its fields are its settings."""

    name: ClassVar[str]

    @abstractmethod
    def select(self, case: Case) -> Scores:
        """Return scores (K,), higher = more vulnerable; equal cases give equal scores."""


S = TypeVar("S", bound=type[Selector])


def selector(name: str) -> Callable[[S], S]:
    """File a selector under ``name``."""

    def file(cls: S) -> S:
        cls.name = name
        SELECTORS.register(name)(cls)
        return cls

    return file


def chosen(
    scores: Scores, *, alpha: float | None = None, size: int | None = None, quantile: float | None = None
) -> Bools:
    """Return the chosen candidates Q (K,) by exactly one rule.

    ``alpha``: score above it; ``quantile``: score above this quantile of contrast samples; ``size``: the so many
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
        if scores.contrast is None:
            raise BadInput("this selector has no scores of contrast samples to take a quantile of; give alpha or size")
        alpha = quantile_of(scores.contrast, quantile)
    assert alpha is not None, "one of the three is given"
    above: Bools = score > alpha
    return above


@selector("kmeans")
@dataclass(frozen=True)
class KMeansDistance(Selector):
    """Distance d_i to the centre of the point's cluster, k-means over candidates and contrast samples together.

    TMIA, Algorithm 1. ``n_clusters`` null: the number of classes. Scores are L2 distances of features.
    """

    n_clusters: int | None = None
    restarts: int = RESTARTS
    max_iter: int = MAX_ITER

    def select(self, case: Case) -> Scores:
        """See ``Selector.select``. Features in blocks are clustered by ``k_means_streamed``."""
        features = case.known_features()
        count = case.classes if self.n_clusters is None else self.n_clusters
        if isinstance(features, torch.Tensor):
            found = k_means(features, count, seed=case.seed, restarts=self.restarts, max_iter=self.max_iter)
        else:
            found = k_means_streamed(features, count, seed=case.seed, restarts=self.restarts, max_iter=self.max_iter)
        return Scores(found.distance[: case.candidates], found.distance[case.candidates :])


@selector("contrast_loss")
@dataclass(frozen=True)
class ContrastLoss(Selector):
    """Mean loss over contrast models, none of which trained on a candidate: points that are hard for all.

    Not of the paper. A contrast sample's mean is over the models that did not train on it; samples that all of them
    trained on are left out.
    """

    def select(self, case: Case) -> Scores:
        """See ``Selector.select``."""
        if case.loss is None:
            raise BadInput("selector contrast_loss reads the contrast models' losses on candidates, but none are given")
        score = case.loss.mean(0)
        if case.contrast_loss is None or case.contrast_outside is None:
            return Scores(score)
        outside = case.contrast_outside
        count = outside.sum(0)
        total = np.where(outside, case.contrast_loss, 0.0).sum(0)
        return Scores(score, total[count > 0] / count[count > 0])


@selector("neighbours")
@dataclass(frozen=True)
class Neighbours(Selector):
    """Minus the expected number of neighbours in the target's training set, as PMIA selects (Long et al., 2020).

    E = #{contrast samples of cosine distance < ``delta``}·|D_target|/|D_ref|; the paper's rule E < .1 is
    ``chosen(scores, alpha=-0.1)``. Contrast samples have no scores (R² distances). ``delta`` has to be set to the
    features; the default leaves 2 of 600 points with E < .1 on fashion14 (20 mlps of 128-128, 800 points each, 4000
    contrast samples), .05 none. ``chunk`` candidates at once: 4·chunk·R bytes, and one reading of the features.
    """

    delta: float = 0.02
    chunk: int = 1024

    def __post_init__(self) -> None:
        if not 0 < self.delta <= 2:
            raise BadInput(f"delta is {self.delta}; allowed: above 0, up to 2, the largest cosine distance")
        if self.chunk < 1:
            raise BadInput(f"chunk is {self.chunk}; it must be 1 or more")

    def select(self, case: Case) -> Scores:
        """See ``Selector.select``."""
        count, references = neighbours(case.known_features(), case.candidates, self.delta, self.chunk)
        return Scores(-count * case.train_size / references)


@selector("gnq")
@dataclass(frozen=True)
class GradientUniqueness(Selector):
    """Mean ½·log2(1 + GNQ) of the candidate's gradient beside the training points of contrast models, in bits.

    Not of the paper: gradient uniqueness (arXiv 2510.10902) as triage, before any target is asked; the attacker's own
    models are read as white boxes. ``candidate_uniqueness`` says what is measured.
    """

    def select(self, case: Case) -> Scores:
        """See ``Selector.select``."""
        if case.uniqueness is None:
            raise BadInput("selector gnq reads the uniqueness of candidates under contrast models, but none is given")
        return Scores(case.uniqueness, case.contrast_uniqueness)


@selector("none")
@dataclass(frozen=True)
class Everyone(Selector):
    """No selection: every candidate is chosen by every rule."""

    def select(self, case: Case) -> Scores:
        """See ``Selector.select``: +∞ for candidates, 0 for one contrast sample."""
        return Scores(np.full(case.candidates, np.inf), np.zeros(1))


def neighbours(
    features: torch.Tensor | Iterable[torch.Tensor], candidates: int, delta: float, chunk: int
) -> tuple[Ids, int]:
    """Return how many rows beyond the first ``candidates`` lie within cosine distance ``delta`` of each of these (K,),
    and how many such rows there are. A row of zeros is at distance 1 of everything."""
    blocks = [features] if isinstance(features, torch.Tensor) else features
    lengths = torch.stack([torch.linalg.vector_norm(block, dim=1) for block in blocks])
    norm = torch.linalg.vector_norm(lengths, dim=0).clamp_min(torch.finfo(torch.float32).tiny)
    rest = len(norm) - candidates
    if rest < 1:
        raise BadInput("neighbours are counted among contrast samples, but features hold candidates only")
    counts = []
    for first in range(0, candidates, chunk):
        rows = slice(first, min(first + chunk, candidates))
        product = norm.new_zeros((rows.stop - first, rest))
        for block in blocks:
            product += block[rows] @ block[candidates:].T
        cosine = product / norm[rows, None] / norm[candidates:]
        counts.append((1 - cosine < delta).sum(1))
    return torch.cat(counts).cpu().numpy(), rest
