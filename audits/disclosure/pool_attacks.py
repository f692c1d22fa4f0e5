"""Attacks on the models of a pool (``removal``): a score for each target and point, higher = more like a member.

An attack with shadows learns what members and non-members look like from models whose halves are known. Naive shadows
teach it about members and non-members at large; those that ran the pipeline about the members and non-members of the
very group that is judged. The learned attacks fit one classifier for all points and targets, so that they see no
point's own history; LiRA does. What each finds is measured in docs/gnq.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from audits.attacks.confidence import of_true_class, scaled
from audits.attacks.lira import log_likelihood_ratio, moments
from audits.errors import BadInput
from audits.registry import Registry
from audits.seeds import derive_seed, numpy_generator

if TYPE_CHECKING:  # removal judges by these attacks
    from audits.disclosure.removal import PoolAnswers

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Labels = NDArray[np.int64]
PoolAccess = Literal["posteriors", "white_box"]

ROWS = 8000
"""At most so many rows teach a classifier: a fit with 145 features takes .4 s on one core."""

TOP = 3
TINY, MOST_ALIKE = 1e-6, 0.99
"""Rates at which points are dropped stay off 0 and 1, for every rule may decide otherwise the next time."""

POOL_ATTACKS: Registry[type[PoolAttack]] = Registry("attack")


@dataclass(frozen=True)
class PoolAttack(ABC):
    """``access``: what it reads of a model; ``shadowed``: it needs shadows; ``learned``: it fits a classifier."""

    name: ClassVar[str]
    access: ClassVar[PoolAccess] = "posteriors"
    shadowed: ClassVar[bool] = True
    learned: ClassVar[bool] = False

    @abstractmethod
    def scores(
        self, targets: PoolAnswers, shadows: PoolAnswers | None, labels: Labels, group: str, seed: int
    ) -> Floats:
        """Return the scores (T, 2n) float64 of all points of the pool under each target.

        ``labels`` (2n,); ``group``: whose members and non-members among the shadows teach the attack; ``seed`` decides
        what it draws. It is not told who is a target's member. Raises BadInput when shadows or features are missing.
        """


A = TypeVar("A", bound=type[PoolAttack])


def pool_attack(name: str) -> Callable[[A], A]:
    """File an attack under ``name``."""

    def file(cls: A) -> A:
        cls.name = name
        POOL_ATTACKS.register(name)(cls)
        return cls

    return file


@pool_attack("loss")
@dataclass(frozen=True)
class LossThreshold(PoolAttack):
    """Minus the loss (Yeom et al., arXiv 1709.01604): no shadows."""

    shadowed: ClassVar[bool] = False

    def scores(
        self, targets: PoolAnswers, shadows: PoolAnswers | None, labels: Labels, group: str, seed: int
    ) -> Floats:
        """See ``PoolAttack.scores``: log p_y."""
        return minus_loss(targets.logits, labels)


@pool_attack("lira")
@dataclass(frozen=True)
class PoolLiRA(PoolAttack):
    """Likelihood ratio of each point's own confidence (LiRA, arXiv 2112.03570), with online shadows.

    Confidence is log(p_y/(1 − p_y)); variances are pooled over points. Points without a shadow on one side take the
    mean of that side.

    Behind a removal a contributor was either trained on or dropped, and a dropped one looks like an outsider. There
    "inside" is a mixture, and the score is log((1 − r)·N(φ; kept)/N(φ; outside) + r), r the share of the shadows with
    the point in their half that dropped it. One Gaussian over both, shifted towards the outsiders and too wide, finds
    less, so that a removal would look better than it is.
    """

    def scores(
        self, targets: PoolAnswers, shadows: PoolAnswers | None, labels: Labels, group: str, seed: int
    ) -> Floats:
        """See ``PoolAttack.scores``: the log likelihood ratio."""
        known = needed(shadows, self.name)
        seen, asked = scaled(known.logits, labels), scaled(targets.logits, labels)
        inside, outside = known.sides(group)
        if group == "contributors" and (inside & ~known.kept).any():
            return mixture_ratio(asked, seen, inside, known.kept, outside)
        values, sides = np.stack([seen, seen]), np.stack([inside, outside])
        return np.stack([log_likelihood_ratio(row, values, sides) for row in asked])


def mixture_ratio(asked: Floats, seen: Floats, half: Bools, kept: Bools, outside: Bools) -> Floats:
    """Return log((1 − r)·N(φ; μ_kept, σ²_kept)/N(φ; μ_out, σ²_out) + r) of ``asked`` (T, N).

    ``seen`` (M, N): confidences of shadows; ``half``, ``kept``, ``outside`` (M, N) bool: which of them have the point
    in their half, trained on it, or have it in their twin's. r (N,): ``drop_rates``; variances are pooled over points.
    A point that no shadow kept, or none has outside, takes the other mean and the mean gap of the others.
    """
    mean_in, variance_in = moments(seen, kept, pooled=True)
    mean_out, variance_out = moments(seen, outside, pooled=True)
    unkept, unseen = ~kept.any(0), ~outside.any(0)
    both = ~(unkept | unseen)
    gap = (mean_in - mean_out)[both].mean() if both.any() else 0.0
    mean_in, mean_out = np.where(unkept, mean_out + gap, mean_in), np.where(unseen, mean_in - gap, mean_out)
    dropped = drop_rates((half & ~kept).sum(0), half.sum(0))
    ratio = gaussian(asked, mean_in, variance_in) - gaussian(asked, mean_out, variance_out)
    found: Floats = np.logaddexp(np.log1p(-dropped) + ratio, np.log(dropped))
    return found


def drop_rates(dropped: NDArray[np.int64], held: NDArray[np.int64]) -> Floats:
    """Return how probably each point is dropped (N,), from how many of the shadows that ``held`` it (N,) dropped it.

    A few shadows a point say little each: rates are drawn towards their mean p as far as they differ no more than
    binomial counts do, r_j = (ρ·dropped_j + (1 − ρ)·p)/(ρ·held_j + 1 − ρ), with the ρ of a beta-binomial by moments.
    Removal at random gives ρ near 0 and one rate for all; a rule that always drops the same points ρ near 1.
    """
    p = dropped.sum() / held.sum()
    scale = max(p * (1 - p), TINY)
    pairs = max(int((held * (held - 1)).sum()), 1)
    alike = (((dropped - held * p) ** 2).sum() / scale - held.sum()) / pairs
    alike = float(np.clip(alike, 0.0, MOST_ALIKE))
    found: Floats = np.clip((alike * dropped + (1 - alike) * p) / (alike * held + 1 - alike), TINY, 1 - TINY)
    return found


def gaussian(asked: Floats, mean: Floats, variance: Floats) -> Floats:
    """Return the log density of a Gaussian but for −½ log 2π."""
    found: Floats = -((asked - mean) ** 2) / (2 * variance) - 0.5 * np.log(variance)
    return found


class LearnedAttack(PoolAttack):
    """A classifier of features that learns from rows (shadow, point) in against out."""

    learned: ClassVar[bool] = True

    @abstractmethod
    def features(self, answers: PoolAnswers, labels: Labels) -> NDArray[Any]:
        """Return the features (M, 2n, F) of every model and point."""

    def scores(
        self, targets: PoolAnswers, shadows: PoolAnswers | None, labels: Labels, group: str, seed: int
    ) -> Floats:
        """See ``PoolAttack.scores``: the classifier's log-odds."""
        known = needed(shadows, self.name)
        taught, asked = self.features(known, labels), self.features(targets, labels)
        if taught.shape[1:] != asked.shape[1:]:
            raise BadInput(
                f"attack {self.name} learns from features {taught.shape[1:]} but is asked about {asked.shape[1:]}; "
                "give targets and shadows of one architecture and pool"
            )
        members, others = known.sides(group)
        if not members.any() or not others.any():
            raise BadInput(
                f"attack {self.name} learns from members and non-members of group {group!r}, but the shadows have "
                "none on one side; judge another group"
            )
        drawn = numpy_generator(derive_seed(seed, self.name, group)).permutation(np.flatnonzero(members | others))
        rows = np.unravel_index(drawn[:ROWS], members.shape)
        return log_odds(taught[rows], members[rows], asked, seed)


@pool_attack("shadow_posterior")
@dataclass(frozen=True)
class ShadowPosterior(LearnedAttack):
    """Classifier of posteriors that learns from shadows (Shokri et al., arXiv 1610.05820; Salem et al., 1806.01246).

    Reads the three largest posteriors in falling order, whether the prediction is right, and log(p_y/(1 − p_y)), which
    stands for the loss. Deviations: logarithms, which tell .999 from .9999; one classifier for all classes, as Salem's;
    boosted trees in place of a network.
    """

    def features(self, answers: PoolAnswers, labels: Labels) -> NDArray[Any]:
        """See ``LearnedAttack.features``."""
        from scipy.special import log_softmax

        posteriors = log_softmax(answers.logits.astype(np.float64), axis=-1)
        largest = -np.sort(-posteriors, axis=-1)[..., :TOP]
        right = answers.logits.argmax(-1) == labels
        return np.concatenate([largest, scaled(posteriors, labels)[..., None], right[..., None]], axis=-1)


@pool_attack("white_box")
@dataclass(frozen=True)
class WhiteBox(LearnedAttack):
    """Classifier of loss, gradient norms by layer, last activations and logits (after Nasr et al., arXiv 1812.00910).

    Reads ``PoolAnswers.features``, as :func:`audits.disclosure.white_box.white_box_features` makes them. Deviations:
    norms in place of gradients, boosted trees in place of a network. It learns from shadows, whose units need not
    correspond to the target's, where the paper's attacker knows some members of the target itself.
    """

    access: ClassVar[PoolAccess] = "white_box"

    def features(self, answers: PoolAnswers, labels: Labels) -> NDArray[Any]:
        """See ``LearnedAttack.features``."""
        if answers.features is None:
            raise BadInput(
                f"attack {self.name} reads features of the weights, which are missing; make them with "
                f"white_box_features, or leave {self.name} out"
            )
        return answers.features


def needed(shadows: PoolAnswers | None, name: str) -> PoolAnswers:
    """Return ``shadows``; BadInput where there are none."""
    if shadows is None:
        raise BadInput(f"attack {name} learns from shadows, but none are given; give naive or adaptive ones")
    return shadows


def minus_loss(logits: NDArray[Any], labels: Labels) -> Floats:
    """Return log p_y (M, 2n) of ``logits`` (M, 2n, classes)."""
    from scipy.special import log_softmax

    return of_true_class(log_softmax(logits.astype(np.float64), axis=-1), labels)


def log_odds(rows: NDArray[Any], members: NDArray[np.bool_], asked: NDArray[Any], seed: int) -> Floats:
    """Return the log-odds of "member" (...) of ``asked`` (..., F), learned from ``rows`` (N, F) and ``members`` (N,).

    Boosted trees: they read the order of a feature's values only, so that neither its scale nor its skew matters (loss
    and norms range over many powers of ten). Settings were chosen on two pools of fashion14, which are not on record.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = HistGradientBoostingClassifier(
        max_iter=60,
        learning_rate=0.08,
        max_leaf_nodes=6,
        min_samples_leaf=50,
        max_features=0.3,
        early_stopping=False,
        random_state=derive_seed(seed, "trees") % 2**32,
    ).fit(rows, members)
    found: Floats = trees.decision_function(asked.reshape(-1, asked.shape[-1])).reshape(asked.shape[:-1])
    return found
