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

    ``epochs`` passes over the data; ``learning_rate`` the initial step size; ``momentum`` is read by SGD only;
    ``schedule`` is stepped once per epoch (``loop.make_schedule``); ``label_smoothing`` in [0, 1); ``augment`` adds
    random shifts by up to ``augment_shift`` pixels and, with ``flip``, horizontal flips; ``random_crop`` shows random
    parts of images at full size, of at least that share of their area (``audits.data.views``). Off by default,
    as in the reference of Apollo: the last epoch is kept and nothing is selected on held-out points.

    Differentially private training (DP-SGD, see ``private``) is asked for by ``noise_multiplier`` (the noise's standard
    deviation over ``max_grad_norm``) or by ``target_epsilon``, from which the noise is worked out for the size of the
    training set; then ``max_grad_norm`` bounds the gradient of each point, ``batch_size`` is the expected one, and
    ``delta`` of the guarantee is a tenth of 1/points unless given. ``private_engine`` is who bounds the gradients:
    "fast" (``engines/fast.py``), or "opacus", which is slower and gives the same up to rounding. ``accountant`` counts
    the privacy spent, and so decides the noise for a target: "prv", or "rdp", which is looser (``accounting``).

    ``fit``: a user's own training in the place of our loop, ``python:module:name``, with ``settings`` of its own
    (``audits.training.own``).
    """

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}

    optimizer: Literal["adamw", "adam", "sgd"] = "adamw"
    learning_rate: float = 2e-3
    epochs: int = 60
    batch_size: int = 64
    weight_decay: float = 1e-2
    momentum: float = 0.9
    schedule: Literal["constant", "cosine", "one_cycle"] = "constant"
    label_smoothing: float = 0.0
    clip_norm: float | None = None
    augment_shift: int = 0
    flip: bool = False
    random_crop: float | None = None
    dtype: Literal["float32", "bfloat16"] = "float32"
    noise_multiplier: float | None = None
    target_epsilon: float | None = None
    max_grad_norm: float | None = None
    delta: float | None = None
    private_engine: Literal["fast", "opacus"] = "fast"
    accountant: Literal["prv", "rdp"] = "prv"
    fit: str | None = None
    settings: dict[str, Any] = field(default_factory=dict, hash=False)

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
            raise BadInput(f"recipe.momentum is {self.momentum}; allowed: 0 up to, but not, 1")
        if not 0 <= self.label_smoothing < 1:
            raise BadInput(f"recipe.label_smoothing is {self.label_smoothing}; allowed: 0 up to, but not, 1")
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
