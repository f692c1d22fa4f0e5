"""Whether a layer's calls hold all that its parameters do, for each point in its place: checked on many points at once.

Two things escape a look at single points. A weight may also be used outside its layer's calls, or by another layer of
the same weight, where that use is dead for the few points looked at: autograd's graph shows it nevertheless. And a
model may sort its points before a layer, so that the rows of a call are those of other points. The sum of the rows is
right then; a sum with a different weight for each point is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import torch
from torch import nn

from audits.gradients.capture import answer, calls_of
from audits.gradients.layers import Call, rule_of

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
        or any(len(rows) != len(x) for call in calls[name] for rows in (call.input, call.grad))
        or not adds_up(model.get_submodule(name), own, calls[name], weight, truth, tolerance)
    }


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
    scale = max(float(truth[full].abs().max()) for full in own.values())
    for name, full in own.items():
        total = torch.stack([rule.total(module, call, name, weight) for call in calls]).sum(0)
        if float((total - truth[full]).abs().max()) > tolerance * scale:
            return False
    return True


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
