"""A check that a layer's calls hold all that its parameters do, for each point in its place, on many points at once.

Two things escape a look at single points. A weight may also be used outside its layer's calls, or by another layer of
the same weight, where that use is dead for the few points looked at: autograd's graph shows it nevertheless. And a
model may sort its points before a layer, so that the rows of a call are those of other points. The sum of the rows is
right then; a sum with a different weight for each point is not.

A use that is not even computed for the points looked at shows only at the points that it is for. So a weighted sum is
compared once more in every pass over the points (``check_sums``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import torch
from torch import nn

from audits.errors import BadInput
from audits.gradients.capture import answer, calls_of
from audits.gradients.layers import Call, OuterRule, rule_of

Owned = Mapping[str, Mapping[str, str]]
"""Layers' names, and for each how its own parameters' names are called in the model."""


def misread(model: nn.Module, layers: Owned, x: torch.Tensor, start: torch.Tensor, tolerance: float) -> set[str]:
    """Return which of ``layers`` must not be read by their calls, on points ``x`` (n, ...).

    ``start`` (classes,): what each point's logits are weighted with. No weight of ``model`` may need a gradient. A
    layer is refused if a parameter is used more or less often than it is called, if a call does not hold n rows, or if
    Σ_i v_i times the rows that its rule gives, another v_i for each point, is not autograd's gradient of
    Σ_i v_i start·logits_i, to ``tolerance`` of its largest number.
    """
    names = [full for own in layers.values() for full in own.values()]
    weight = weights_of(x, start)
    leaves = {name: model.get_parameter(name).detach().clone().requires_grad_(True) for name in names}
    with torch.enable_grad():
        value = (answer(model, x, leaves) @ start * weight).sum()
    uses = uses_of(value, leaves.values())
    truth = dict.fromkeys(names, torch.zeros(()))
    if value.requires_grad and leaves:
        grads = torch.autograd.grad(value, list(leaves.values()), allow_unused=True, materialize_grads=True)
        truth = {name: found.to_dense().flatten() for name, found in zip(names, grads, strict=True)}
    del value
    calls = calls_of(model, layers, x, lambda logits: start.expand_as(logits))
    return {
        name
        for name, own in layers.items()
        if not calls[name]
        or any(uses[id(leaves[full])] != len(calls[name]) for full in own.values())
        or not all(reads(model.get_submodule(name), call, len(x)) for call in calls[name])
        or not adds_up(model.get_submodule(name), own, calls[name], weight, truth, tolerance)
    }


def reads(module: nn.Module, call: Call, points: int) -> bool:
    """Say whether the layer's rule can read a call as one of so many ``points``."""
    rule = rule_of(module)
    assert rule is not None
    return rule.reads(module, call, points)


def weights_of(x: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return a weight between ½ and 3/2 for each of the points ``x``, in the dtype and on the device of ``like``."""
    return 1 + torch.arange(1, len(x) + 1, device=like.device, dtype=torch.float64).sin().to(like.dtype) / 2


def adds_up(
    module: nn.Module,
    own: Mapping[str, str],
    calls: list[Call],
    weight: torch.Tensor,
    truth: Mapping[str, torch.Tensor],
    tolerance: float,
) -> bool:
    """Say whether the weighted sums that the layer's rule gives are the ``truth``."""
    rule = rule_of(module)
    assert rule is not None
    scale = torch.stack([truth[full].abs().max() for full in own.values()]).max()
    apart = []
    for name, full in own.items():
        total = torch.stack([rule.total(module, call, name, weight) for call in calls]).sum(0)
        apart.append((total - truth[full]).abs().max())
    worst, most = torch.stack([torch.stack(apart).max().to(scale), scale]).tolist()  # a GPU is waited for once
    return not worst > tolerance * most


TOLERANCE = {torch.float32: 1e-3, torch.float64: 1e-7}
"""What rules may differ from autograd by, of the largest number in a layer's gradients."""

FLOOR = 1e-3
"""Sums in which terms cancel are compared with this share of the terms' size: they are not known any better."""


def powers_of(points: int, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return 1, 2, 4 or 8 for each of so many ``points``, (n,), in an order without a period."""
    places = torch.arange(1, points + 1, dtype=torch.float64)
    return (2.0 ** (places * 0.6180339887498949 % 1 * 4).floor()).to(device, dtype)


@dataclass(frozen=True)
class Summed:
    """A parameter ``own`` of the layer ``module`` that is called ``full`` in the model, and what was read of it.

    ``calls``: of the layer; ``factors``: a and b of all calls, if its rule has made them.
    """

    module: str
    own: str
    full: str
    calls: list[Call]
    factors: tuple[torch.Tensor, ...] | None


def check_sums(
    model: nn.Module, found: Iterable[Summed], weight: torch.Tensor, truth: Mapping[str, torch.Tensor], first: int
) -> None:
    """Refuse a parameter whose rows, weighted by ``weight`` (n,), do not add up to the ``truth`` (name → numbers).

    ``first``: the number of the first point of the pass, for the message.
    """
    each = list(found)
    size = {
        one.module: torch.stack([truth[o.full].abs().max() for o in each if o.module == one.module]) for one in each
    }
    off = [
        shortfall(model.get_submodule(one.module), one, weight, truth[one.full], size[one.module].max()) for one in each
    ]
    if not off or not bool((torch.stack(off) > 1).any()):
        return
    wrong = each[int(torch.stack(off).nan_to_num(nan=0.0).argmax())]
    raise BadInput(
        f"model: the gradient of {wrong.full} at points {first} to {first + len(weight) - 1} is not what the calls of "
        f"its layer give, so that some inputs use it elsewhere; allowed: weights that their layer alone uses; call the "
        f"layer there too, or make it a subclass of {type(model.get_submodule(wrong.module)).__name__}, whose weights "
        "are read through the whole model: slower, and always right"
    )


def shortfall(
    module: nn.Module, one: Summed, weight: torch.Tensor, truth: torch.Tensor, scale: torch.Tensor
) -> torch.Tensor:
    """Return by how much a weighted sum misses the ``truth``, in units of what it may (a number on the device).

    ``scale``: the largest number of the truths of the layer.
    """
    total, size = total_of(module, one, weight)
    allowed = TOLERANCE[truth.dtype] * torch.maximum(scale, FLOOR * size)
    return (total - truth).abs().max() / allowed.clamp(min=torch.finfo(truth.dtype).tiny)


def total_of(module: nn.Module, one: Summed, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return Σ_i weight_i · rows_i, flat, and a bound of the size of the terms in any of its numbers."""
    rule = rule_of(module)
    assert rule is not None
    if one.factors is not None and isinstance(rule, OuterRule):
        a, b = one.factors
        terms = (b * weight[:, None, None, None]).abs().sum((0, 2)).max()
        size = terms * a.abs().max() if a.is_floating_point() else terms
        return rule.weighted(module, a, b, weight), size
    rows = torch.stack([rule.rows(module, call, one.own) for call in one.calls]).sum(0)
    return weight @ rows, torch.stack([weight @ call.grad.abs().flatten(1).sum(1) for call in one.calls]).sum()


def uses_of(value: torch.Tensor, leaves: Iterable[torch.Tensor]) -> Counter[int]:
    """Return how often each of ``leaves``, by its id, stands in the graph that ``value`` was computed by."""
    wanted = {id(leaf) for leaf in leaves}
    found: Counter[int] = Counter()
    waiting = [] if value.grad_fn is None else [value.grad_fn]
    seen = set(waiting)
    while waiting:
        for node, _ in waiting.pop().next_functions:
            if node is None:
                continue
            leaf = id(getattr(node, "variable", None))
            if leaf in wanted:
                found[leaf] += 1
            if node not in seen:
                seen.add(node)
                waiting.append(node)
    return found
