"""Checks of every architecture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import safetensors.torch
import torch
from torch import nn

from audits.conformance.outcome import different, must
from audits.data.tensors import TensorSet
from audits.models.base import Architecture
from audits.training.fit import fit
from audits.training.recipe import Recipe

EXACT, SINGLE = 1e-10, 1e-4
"""How far answers may depend on the batch: in double precision, and of models that compute in single precision only."""


@dataclass(frozen=True)
class ModelCase:
    """An architecture, and points of ``shape`` that it reads; ``tokens``: whole numbers below it, as floats."""

    architecture: Architecture
    shape: tuple[int, ...]
    classes: int
    tokens: int = 0

    def build(self, seed: int = 1) -> nn.Module:
        """Return a fresh model."""
        return self.architecture.build(self.shape, self.classes, seed)

    def points(self, count: int) -> torch.Tensor:
        """Return random points."""
        generator = torch.Generator().manual_seed(count)
        if self.tokens:
            return torch.randint(1, self.tokens, (count, *self.shape), generator=generator)
        return torch.rand(count, *self.shape, generator=generator)

    @cached_property
    def trained(self) -> nn.Module:
        """A model after two epochs, which checks may only read."""
        data = TensorSet(self.points(16), torch.arange(16) % self.classes)
        return fit(self.build(), data, Recipe(optimizer="sgd", learning_rate=0.1, epochs=2, batch_size=8), seed=0)


def equal_seeds(case: ModelCase) -> None:
    """Equal seeds give equal weights, and torch's own generator stays as it was."""
    torch.manual_seed(11)
    before = torch.get_rng_state()
    first = case.build()
    must(bool(torch.equal(before, torch.get_rng_state())), "building a model moved torch's generator; do not reseed it")
    torch.manual_seed(12)
    unlike = different(first, case.build())
    must(
        not unlike,
        f"{', '.join(unlike[:3])} differ between two models of one seed; draw from torch, NumPy or random, not from a "
        "generator with a seed of its own or from the clock",
    )


def other_seeds(case: ModelCase) -> None:
    """Another seed gives other weights."""
    must(
        bool(different(case.build(), case.build(2))),
        "two seeds give one model; do not set a seed inside, the audit gives each model its own",
    )


def logits(case: ModelCase) -> None:
    """An answer is one row of finite logits a point, the same each time in eval mode."""
    x, model = case.points(6), settled(case, case.build())
    with torch.no_grad():
        found, again = model(x), model(x)
    must(
        isinstance(found, torch.Tensor) and tuple(found.shape) == (6, case.classes),
        f"6 points get {tuple(getattr(found, 'shape', ()))}; needed: logits of shape (6, {case.classes})",
    )
    must(bool(torch.isfinite(found).all()), "a logit of an untrained model is not finite; look at its scale")
    must(bool(torch.equal(found, again)), "two answers about one point differ in eval mode; take out what is random")


def points_apart(case: ModelCase) -> None:
    """In eval mode an answer does not depend on the other points of the batch."""
    x, model, bound = case.points(6), case.build(), EXACT
    try:
        whole = settled(case, model.double())(x if case.tokens else x.double()).detach()
    except RuntimeError:  # of a model that casts to single precision itself
        model, bound = settled(case, case.build()), SINGLE
        whole = model(x).detach()
    x = x.to(whole.dtype) if not case.tokens else x
    with torch.no_grad():
        alone = torch.cat([model(one[None]) for one in x])
    gap = float((whole - alone).abs().max())
    must(
        gap <= bound, f"an answer moves by {gap:.2g} with the batch; use running statistics in eval mode, as BatchNorm"
    )
    must(float(whole.std(0).max()) > 1e-4, "all points get one answer; does the model read its input?")


def all_learn(case: ModelCase) -> None:
    """Training moves every parameter."""
    model, untouched = case.trained, case.build()
    moved = dict(untouched.named_parameters())
    still = [name for name, value in model.named_parameters() if torch.equal(value, moved[name])]
    must(not still, f"{', '.join(still[:3])} did not move in two epochs of SGD; use it in forward, or drop it")


def stored(case: ModelCase) -> None:
    """Weights survive the store: a new model with them gives the same answers bit for bit."""
    model, other = case.trained, case.build(9)
    state = {name: value.contiguous().clone() for name, value in model.state_dict().items()}
    other.load_state_dict(safetensors.torch.load(safetensors.torch.save(state)))
    x = case.points(4)
    with torch.no_grad():
        same = torch.equal(model.eval()(x), other.eval()(x))
    must(bool(same), "a model read back answers otherwise; keep all that decides an answer in parameters and buffers")


CHECKS: tuple[Callable[[ModelCase], None], ...] = (equal_seeds, other_seeds, logits, points_apart, all_learn, stored)


def settled(case: ModelCase, model: nn.Module) -> nn.Module:
    """Return ``model`` in eval mode, its BatchNorm with the statistics of some points, as after training on them."""
    x = case.points(6)
    dtype = next((each.dtype for each in model.parameters()), x.dtype)
    for layer in model.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            layer.momentum = 1.0
    with torch.no_grad():
        model.train()(x if case.tokens else x.to(dtype))
    return model.eval()
