"""The recipe of a training: one frozen value, the same for target, shadow, retrained and reference models."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from audits.errors import BadInput
from audits.own.permission import is_own

ENGINES = ("fast", "opacus")
ACCOUNTANTS = ("prv", "rdp")


@dataclass(frozen=True)
class Recipe:
    """Everything that decides a training run but its data, its architecture and its seed.

    Augmentation is off by default (``augment_shift``, ``flip``, ``random_crop``: ``audits.data.views``), as in the
    reference of Apollo; the last epoch is kept and nothing is selected on held-out points.

    Differentially private training (DP-SGD, see ``private``) is asked for by ``noise_multiplier`` or by
    ``target_epsilon``, from which the noise is worked out for the size of the training set.

    ``fit``: a user's own training in the place of our loop, ``python:module:name``, with ``settings`` of its own
    (``audits.training.own``).
    """

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}

    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    """The optimiser."""
    learning_rate: float = 2e-3
    """Initial step size, above 0."""
    epochs: int = 60
    """Passes over the data, 0 or more."""
    batch_size: int = 64
    """Points a step, 1 or more; in private training the expected number."""
    weight_decay: float = 1e-2
    """Weight decay, 0 or more."""
    momentum: float = 0.9
    """Momentum of SGD, below 1; others do not read it."""
    schedule: Literal["constant", "cosine", "one_cycle"] = "constant"
    """How the step size falls; stepped once per epoch."""
    label_smoothing: float = 0.0
    """Label smoothing, below 1."""
    clip_norm: float | None = None
    """Largest norm of a step's gradient, null for no limit; not in private training."""
    augment_shift: int = 0
    """Pixels by which images are shifted at random, up to."""
    flip: bool = False
    """Flip images horizontally at random."""
    random_crop: float | None = None
    """Smallest share of an image's area that a random crop shows, above 0 up to 1; null for none."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Number format of the forward pass; private training allows float32 only."""
    noise_multiplier: float | None = None
    """DP-SGD: standard deviation of the noise over ``max_grad_norm``; needs that, excludes ``target_epsilon``."""
    target_epsilon: float | None = None
    """DP-SGD: the ε for which the noise is worked out; needs ``max_grad_norm``, excludes ``noise_multiplier``."""
    max_grad_norm: float | None = None
    """DP-SGD: bound of the gradient of each point; only with one of the two above."""
    delta: float | None = None
    """DP-SGD: δ of the guarantee; null for a tenth of 1/points."""
    private_engine: Literal["fast", "opacus"] = "fast"
    """DP-SGD: who bounds the gradients (``engines/fast.py``); opacus is slower and gives the same up to rounding."""
    accountant: Literal["prv", "rdp"] = "prv"
    """DP-SGD: how the privacy spent is counted (``accounting``); rdp is looser."""
    fit: str | None = None
    settings: dict[str, Any] = field(default_factory=dict, hash=False)
    """Settings of ``fit``; only with it."""

    @property
    def private(self) -> bool:
        """Whether training is differentially private."""
        return self.noise_multiplier is not None or self.target_epsilon is not None

    def __post_init__(self) -> None:
        positive("recipe.learning_rate", self.learning_rate)
        positive("recipe.batch_size", self.batch_size)
        not_negative("recipe.epochs", self.epochs)
        not_negative("recipe.weight_decay", self.weight_decay)
        not_negative("recipe.augment_shift", self.augment_shift)
        if not 0 <= self.momentum < 1:
            raise BadInput(f"recipe.momentum is {self.momentum}; allowed: 0 up to, but not including, 1")
        if not 0 <= self.label_smoothing < 1:
            raise BadInput(f"recipe.label_smoothing is {self.label_smoothing}; allowed: 0 up to, but not including, 1")
        if self.clip_norm is not None:
            positive("recipe.clip_norm", self.clip_norm)
        if self.random_crop is not None and not 0 < self.random_crop <= 1:
            raise BadInput(f"recipe.random_crop is {self.random_crop}; allowed: above 0, up to 1 (usual: 0.08)")
        check_privacy(self)
        check_own(self)


def check_own(recipe: Recipe) -> None:
    """Refuse settings that nothing reads, and what only our own loop can do."""
    if recipe.fit is None:
        if recipe.settings:
            raise BadInput(f"recipe.settings is given ({', '.join(recipe.settings)}), which only recipe.fit reads")
        return
    if not is_own(recipe.fit):
        raise BadInput(f"recipe.fit is {recipe.fit!r}; write it as python:module:name, or leave it out")
    if recipe.private:
        raise BadInput("recipe.fit is given, but private training needs our own loop; leave one of them out")


def check_privacy(recipe: Recipe) -> None:
    """Refuse settings of DP-SGD that cannot work, or that would silently not be private."""
    if recipe.private_engine not in ENGINES:
        raise BadInput(f"recipe.private_engine is {recipe.private_engine!r}; allowed: {', '.join(ENGINES)}")
    if recipe.accountant not in ACCOUNTANTS:
        raise BadInput(f"recipe.accountant is {recipe.accountant!r}; allowed: {', '.join(ACCOUNTANTS)}")
    asked = "recipe.noise_multiplier" if recipe.noise_multiplier is not None else "recipe.target_epsilon"
    if not recipe.private:
        for field in ("max_grad_norm", "delta"):
            if getattr(recipe, field) is not None:
                raise BadInput(
                    f"recipe.{field} is {getattr(recipe, field)}, which only private training reads; "
                    "give recipe.noise_multiplier or recipe.target_epsilon too, or leave it null"
                )
        for field, usual in (("private_engine", ENGINES[0]), ("accountant", ACCOUNTANTS[0])):
            if getattr(recipe, field) != usual:
                raise BadInput(
                    f"recipe.{field} is {getattr(recipe, field)}, which only private training reads; "
                    "give recipe.noise_multiplier or recipe.target_epsilon too, or leave it out"
                )
        return
    if recipe.noise_multiplier is not None and recipe.target_epsilon is not None:
        raise BadInput(
            "recipe.noise_multiplier and recipe.target_epsilon are both given; each decides the noise: give one"
        )
    if recipe.noise_multiplier is not None:
        not_negative("recipe.noise_multiplier", recipe.noise_multiplier)
    if recipe.target_epsilon is not None:
        positive("recipe.target_epsilon", recipe.target_epsilon)
    if recipe.max_grad_norm is None:
        raise BadInput(
            f"{asked} is given but not recipe.max_grad_norm, the bound of each point's gradient; give e.g. 1.0"
        )
    positive("recipe.max_grad_norm", recipe.max_grad_norm)
    if recipe.delta is not None and not 0 < recipe.delta < 1:
        raise BadInput(f"recipe.delta is {recipe.delta}; allowed: above 0 and below 1, best far below 1/points")
    if recipe.clip_norm is not None:
        raise BadInput(
            f"recipe.clip_norm is {recipe.clip_norm}, but with {asked} recipe.max_grad_norm clips; leave it null"
        )
    if recipe.random_crop is not None:
        raise BadInput(f"recipe.random_crop is {recipe.random_crop}; private training ({asked}) crops nothing")
    if recipe.dtype != "float32":
        raise BadInput(f"recipe.dtype is {recipe.dtype}; private training ({asked}) allows float32 only")


def positive(field: str, value: float) -> None:
    """Refuse ``value`` unless it is above 0 and finite."""
    if not 0 < value < math.inf:
        raise BadInput(f"{field} is {value}; it must be above 0 and finite")


def not_negative(field: str, value: float) -> None:
    """Refuse ``value`` if it is below 0 or not finite."""
    if not 0 <= value < math.inf:
        raise BadInput(f"{field} is {value}; it must be 0 or more and finite")
