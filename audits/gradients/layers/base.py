"""Rules by which a layer's inputs and the gradients of its outputs give the gradients of single points."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import nn

from audits.registry import Registry

LAYERS: Registry[LayerRule] = Registry("layer type", "audits.gradients.layers", whole=True)


@dataclass(frozen=True)
class Call:
    """One call of a layer with n points: ``input`` (n, ...) and ``grad`` (n, ...), the loss's gradient at its output.

    The loss is summed over the points, so ``grad[i]`` is the gradient of the i-th point's own loss.
    """

    input: torch.Tensor
    grad: torch.Tensor


class LayerRule(ABC):
    """One type of layer. A rule may be wrong for a module that is used unusually: ``survey`` tries it before use."""

    def reads(self, module: nn.Module, call: Call, points: int) -> bool:
        """Say whether a call has the points in the first axis of what went in and came out, ``points`` of them."""
        return all(each.ndim >= 2 and len(each) == points for each in (call.input, call.grad))

    @abstractmethod
    def rows(self, module: nn.Module, call: Call, name: str) -> torch.Tensor:
        """Return each point's gradient of the layer's parameter ``name`` in one call, flat: (n, numbers)."""

    def total(self, module: nn.Module, call: Call, name: str, weight: torch.Tensor) -> torch.Tensor:
        """Return Σ_i weight_i · rows_i of one call, flat: (numbers,); ``weight`` is (n,)."""
        return weight @ self.rows(module, call, name)


class OuterRule(LayerRule):
    """A layer whose weight has the gradient Σ_t b_t a_tᵀ: a_t what weights were multiplied by at position t, b_t ∂loss.

    So two points' gradients have the inner product Σ_t,s (a_t·a'_s)(b_t·b'_s), without either gradient: the "ghost"
    kernel. A module that is called several times has the positions of all its calls.
    """

    @abstractmethod
    def factors(self, module: nn.Module, call: Call) -> tuple[torch.Tensor, torch.Tensor]:
        """Return a (n, groups, positions, inputs) and b (n, groups, positions, outputs) of one call."""

    def rows(self, module: nn.Module, call: Call, name: str) -> torch.Tensor:
        a, b = self.factors(module, call)
        return b.sum(2).flatten(1) if name == "bias" else self.gradient(module, a, b, 0, self.units(module))

    def total(self, module: nn.Module, call: Call, name: str, weight: torch.Tensor) -> torch.Tensor:
        """Return Σ_i weight_i · rows_i without making the gradients of single points."""
        a, b = self.factors(module, call)
        if name == "bias":
            return weight @ b.sum(2).flatten(1)
        return self.weighted(module, a, b, weight)

    def weighted(self, module: nn.Module, a: torch.Tensor, b: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        """Return Σ_i weight_i · gradient_i of the whole weight, flat: the gradient of all points as one long point."""
        b = b * weight[:, None, None, None]
        return self.gradient(module, one_point(a), one_point(b), 0, self.units(module))[0]

    def units(self, module: nn.Module) -> int:
        """Return into how many equal parts the weight can be divided: the outputs of a group."""
        return int(module.get_parameter("weight").shape[0])

    def gradient(self, module: nn.Module, a: torch.Tensor, b: torch.Tensor, low: int, high: int) -> torch.Tensor:
        """Return each point's gradient of the weight's units ``low`` to ``high`` (in every group), flat: (n, ...)."""
        return (b[..., low:high].transpose(-1, -2) @ a).flatten(1)

    def ghost_numbers(self, module: nn.Module, a: torch.Tensor, b: torch.Tensor) -> int:
        """Return groups × (inputs + outputs), the numbers of a and b at one position."""
        return int(a.shape[1] * (a.shape[3] + b.shape[3]))

    def inner(self, a: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Return a_t·a'_s of all points and positions in float64: (groups, n × positions, m × positions)."""
        return stacked(a) @ stacked(other).transpose(1, 2)

    def inner_of_each(self, a: torch.Tensor) -> torch.Tensor:
        """Return a_t·a_s of each point with itself in float64: (n, groups, positions, positions)."""
        exact = a.double()
        return exact @ exact.transpose(-1, -2)


def stacked(factor: torch.Tensor) -> torch.Tensor:
    """Return (n, groups, positions, width) as (groups, n × positions, width) in float64."""
    return factor.double().transpose(0, 1).flatten(1, 2)


def one_point(factor: torch.Tensor) -> torch.Tensor:
    """Return (n, groups, positions, ...) as one point with n × positions positions."""
    return factor.transpose(0, 1).flatten(1, 2)[None]


def rule_of(module: nn.Module) -> LayerRule | None:
    """Return the rule for ``module``'s very type (a subclass may compute something else), or None."""
    key = key_of(type(module))
    if key not in LAYERS:
        return None
    return LAYERS[key]


def key_of(kind: type[nn.Module]) -> str:
    """Return the name under which the rule of ``kind`` is filed."""
    return f"{kind.__module__}.{kind.__qualname__}"
