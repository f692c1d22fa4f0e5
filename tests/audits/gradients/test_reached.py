"""Gradients that are not those of the logits are refused, and no others: compared with finite differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from audits.errors import BadInput
from audits.gradients.gram import gram
from tests.cases.families import thinned
from tests.cases.layer_models import CLASSES, drawn, labels, slow_gradients, tokens

Layer = Callable[[nn.Module, torch.Tensor], torch.Tensor]


class Reversed(torch.autograd.Function):
    """The identity, with the gradient of its negative: a gradient reversal layer."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return -grads[0]


class HalfSquare(torch.autograd.Function):
    """A square whose gradient lacks a factor."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.square()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return ctx.saved_tensors[0] * grads[0]


class Signs(torch.autograd.Function):
    """The sign, with the gradient of the identity: a straight-through estimator."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.sign()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> torch.Tensor:
        return grads[0]


class Block(nn.Module):
    """Two layers around a third, ``body``, that ``how`` calls."""

    def __init__(self, how: Layer, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.first, self.body, self.head = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, CLASSES)
        self.how = how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.how(self.body, self.first(x).relu()).tanh())


def hooked(body: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return what ``body`` gives, whose gradient a hook halves."""
    found = body(x)
    if found.requires_grad:
        found.register_hook(lambda grad: grad / 2)
    return found


def clipped(body: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """Return what ``body`` gives, whose gradient a hook bounds."""
    found = body(x)
    if found.requires_grad:
        found.register_hook(lambda grad: grad.clamp(-1e-3, 1e-3))
    return found


def half_detached(body: nn.Module, x: torch.Tensor) -> torch.Tensor:
    found = body(x)
    return torch.cat([found[:, :3], found[:, 3:].detach()], 1)


def without_grad(body: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        more = body(x)
    return body(x) + more


def some_points(body: nn.Module, x: torch.Tensor) -> torch.Tensor:
    found = body(x)
    return torch.where(x[:, :1] > 0.3, found, found.detach())


WRONG: dict[str, Layer] = {
    "sum with itself detached": lambda body, x: body(x) + body(x).detach(),
    "residual detached": lambda body, x: x.detach() + body(x),
    "a tenth detached": lambda body, x: 0.9 * body(x) + 0.1 * body(x).detach(),
    "half of the channels": half_detached,
    "some points": some_points,
    "second use under no_grad": without_grad,
    "second use by data": lambda body, x: body(x) + F.linear(x.relu(), body.weight.data),
    "transposed and detached": lambda body, x: body(x) @ body.weight.detach(),
    "part of the weight": lambda body, x: F.linear(x, torch.cat([body.weight[:3], body.weight[3:].detach()])),
    "scaled": lambda body, x: (lambda found: found.detach() + (found - found.detach()) / 4)(body(x)),
    "reversed": lambda body, x: Reversed.apply(body(x)),
    "wrong backward": lambda body, x: HalfSquare.apply(body(x)),
    "hook": hooked,
    "clipping hook": clipped,
    "norm detached": lambda body, x: (lambda found: found / found.norm(dim=1, keepdim=True).detach())(body(x)),
    "gate detached": lambda body, x: x * body(x).sigmoid().detach() + body(x),
}
SHORT = [
    *((name, torch.float64) for name in ("part of the weight", "some points", "wrong backward")),
    ("clipping hook", torch.float64),
    ("transposed and detached", torch.float32),
]
"""In float64 float32 is compared too."""


@pytest.mark.parametrize(
    ("name", "dtype"), thinned(((name, dtype) for dtype in (torch.float64, torch.float32) for name in WRONG), SHORT)
)
def test_gradients_that_are_wrong_in_part_are_refused_in_one_line_with_the_parameters(
    name: str, dtype: torch.dtype
) -> None:
    with pytest.raises(BadInput, match=r"not the derivatives of its logits \(.*(first|body).*detach.*") as caught:
        gram(Block(WRONG[name]), drawn(16, 6), labels(16), dtype=dtype)
    assert "head" not in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("scale", thinned((1e-6, 1e3, 1e8), (1e8,)))
def test_wrong_gradients_are_found_whatever_the_size_of_the_logits(scale: float) -> None:
    for how, wrong in ((WRONG["half of the channels"], True), (lambda body, x: body(x), False)):
        model = Block(how)
        with torch.no_grad():
            model.head.weight.mul_(scale)
            model.head.bias.mul_(scale)
        if wrong:
            with pytest.raises(BadInput, match=r"body\.weight"):
                gram(model, drawn(8, 6), labels(8))
        else:
            gram(model, drawn(8, 6), labels(8))


def straight(hard: torch.Tensor, soft: torch.Tensor) -> torch.Tensor:
    """Return ``hard`` with the gradient of ``soft``."""
    return soft + (hard - soft).detach()


def four_bits(values: torch.Tensor) -> torch.Tensor:
    return straight((values * 7).round().clamp(-7, 7) / 7, values)


STEPPED: dict[str, Layer] = {
    "signs": lambda body, x: Signs.apply(body(x)),
    "signs and the rest": lambda body, x: x + Signs.apply(body(x)),
    "binary weights": lambda body, x: F.linear(x, Signs.apply(body.weight), body.bias),
    "four bits": lambda body, x: F.linear(x, four_bits(body.weight), body.bias),
    "activations of four bits": lambda body, x: four_bits(body(x)),
    "hard choice": lambda body, x: x * straight(F.one_hot(body(x).argmax(1), 6).to(x), body(x).softmax(1)),
    "hard gate": lambda body, x: x * straight((body(x) > 0).to(x), body(x).sigmoid()),
}


@pytest.mark.parametrize("name", thinned(STEPPED, ("signs", "binary weights", "hard gate")))
def test_gradients_that_stand_in_for_those_of_a_step_are_taken_as_meant(name: str) -> None:
    model = Block(STEPPED[name])
    K = gram(model, drawn(16, 6), labels(16))
    G = slow_gradients(model.double(), drawn(16, 6).double(), labels(16))
    assert torch.allclose(K, G @ G.T)


KINKED = (nn.ReLU, nn.ReLU6, nn.Hardtanh, nn.LeakyReLU, nn.GELU, nn.SiLU, nn.Hardswish, nn.PReLU, nn.Hardshrink)


@pytest.mark.parametrize(
    ("activation", "bias"),
    thinned(
        ((activation, bias) for activation in KINKED for bias in (0.0, 0.1)),
        [*((activation, 0.0) for activation in KINKED), (nn.Hardshrink, 0.1)],
    ),
)
def test_kinks_on_which_units_stand_are_no_wrong_gradients(activation: Callable[[], nn.Module], bias: float) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(1, 3, 3), activation(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(27, CLASSES))
    nn.init.constant_(model[0].bias, bias)
    x = drawn(6, 1, 8, 8).relu()
    x[:, :, :3] = 0
    gram(model, x, labels(6))


class Padded(nn.Module):
    """Words, of which the first is padding: its row is not 0 and has no gradient, by torch's design."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.body, self.head = nn.Embedding(9, 5, padding_idx=0), nn.LSTM(5, 5), nn.Linear(5, CLASSES)
        nn.init.ones_(self.words.weight[0].data)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.words(x).transpose(0, 1))[0][-1])


def test_padding_has_no_gradient_on_purpose() -> None:
    x = tokens(6, 4, 9)
    x[:, 2] = 0
    gram(Padded(), x, labels(6))


class Casting(nn.Module):
    """Casts to float32 inside, so that it cannot run in float64."""

    def __init__(self, how: Layer) -> None:
        super().__init__()
        self.block = Block(how)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.block(x.float())


def test_models_that_only_run_in_float32_are_compared_in_it() -> None:
    gram(Casting(lambda body, x: body(x)), drawn(16, 6), labels(16), dtype=torch.float32)
    with pytest.raises(BadInput, match=r"not the derivatives of its logits \(.*block.body"):
        gram(Casting(WRONG["half of the channels"]), drawn(16, 6), labels(16), dtype=torch.float32)
