"""A check that autograd's gradients of a model are the derivatives of its logits.

A layer that computes under ``torch.no_grad``, an output that is detached, whole or in part, a second use of a weight
by ``.data``, a hook or a custom backward that changes gradients: the Gram matrix would be that of other numbers,
silently. So derivatives along random directions of the parameters are compared with central differences, of steps of
several sizes, at weights a little away from the model's own, where many units may stand on a kink exactly.

A parameter is refused only where the differences agree with each other and not with autograd; they do not agree where
rounding hides them. Nor is it refused if the logits jump as it changes, or do not change at all: behind a quantiser, a
threshold or a hard choice the derivative is 0 almost everywhere, and a gradient that the author put there instead
(straight-through) is taken as meant. So what is detached beside a hard choice by the same parameter is not seen.
Parameters that the logits do not depend on have the gradient 0 that they should.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import nn

from audits.errors import BadInput
from audits.gradients.attribution import weights_of
from audits.gradients.capture import answer
from audits.gradients.model_copies import computing_in, contiguous

STEPS = {torch.float32: (1e-2, 3e-2), torch.float64: (1e-6, 1e-5, 1e-4)}
"""Steps, of the size of the parameters, whose differences must agree."""
DIRECTIONS = 3
"""Directions in which a parameter that may be refused is moved."""
AWAY = 1e-2
"""How far from the model's own weights all is compared, of their size."""
APART = {torch.float32: 3e-2, torch.float64: 1e-6}
"""What differences may be apart from autograd's derivative, of the parameters' shares in it."""
NOISE = 100
"""What rounding changes the logits by, in units of the last place."""
FAR, GRID, HALVINGS = 10.0, 33, 28
"""How far a jump is looked for, of a parameter's size; the number of places to start from; how closely."""
JUMP = 1e-3
"""What the logits change by from one side of a jump to the other, of their change between the places around it."""
SMALL = 1e-2
"""The least size that a parameter is taken to have, of the middle one of all: some are 0."""
LISTED = 3


def check_reached(model: nn.Module, wanted: tuple[str, ...], sample: torch.Tensor) -> None:
    """Refuse a model in which autograd's gradients of the parameters ``wanted`` are not those of its logits.

    ``sample``: points (n, ...) to try. No weight of ``model`` may need a gradient. All is computed in float64, but for
    models and devices that only float32 goes through, where differences must be larger to be seen. Costs one gradient
    of a sum over ``sample`` and two passes; where these disagree, up to six more for each group of parameters that is
    looked at, and 79 for each parameter. Memory: a copy of the weights and one gradient, in float64.
    """
    found = list(islice(Nearby.of(*in_float64(model, sample), wanted).wrong(wanted), LISTED + 1))
    if found:
        more = " and more" if len(found) > LISTED else ""
        raise BadInput(
            "model: the gradients that autograd gives are not the derivatives of its logits "
            f"({', '.join(found[:LISTED])}{more}); forward changes them with detach, .data, torch.no_grad or "
            "inference_mode, a hook or a backward of its own: take that out, or, if these parameters were frozen in "
            "the training, set requires_grad_(False) on them"
        )


def in_float64(model: nn.Module, sample: torch.Tensor) -> tuple[nn.Module, torch.Tensor]:
    """Return a copy of a float32 model and its points that compute in float64, or both as they are."""
    if next(model.parameters()).dtype == torch.float64:
        return model, sample
    points = sample.double() if sample.is_floating_point() else sample
    try:
        with torch.no_grad():
            twin = computing_in(contiguous(model), torch.float64)
            exact = answer(twin, points).dtype == torch.float64
    except (RuntimeError, TypeError):  # a cast in forward, or a device that has no float64
        return model, sample
    return (twin, points) if exact else (model, sample)


@dataclass(frozen=True)
class Nearby:
    """A weighted sum of the logits of ``sample``, at weights near the model's own and moved from there.

    ``start`` (n, classes): the weights of the sum; ``sizes``: how large the numbers of each parameter are; ``slopes``:
    autograd's derivatives along the directions, (DIRECTIONS,) for each parameter; ``rounding``: of the sum.
    """

    model: nn.Module
    sample: torch.Tensor
    start: torch.Tensor
    sizes: dict[str, float]
    slopes: dict[str, torch.Tensor]
    rounding: float

    @classmethod
    def of(cls, model: nn.Module, sample: torch.Tensor, wanted: tuple[str, ...]) -> Nearby:
        """Return the sum with autograd's derivatives; BadInput where it has none."""
        sizes = sizes_of(model, wanted)
        leaves = {name: moved(model, name, sizes[name], {}).requires_grad_(True) for name in wanted}
        with torch.enable_grad():
            logits = answer(model, sample, leaves)
            classes = torch.arange(1, logits.shape[1] + 1, device=logits.device, dtype=logits.dtype).cos()
            start = weights_of(sample, logits)[:, None] * classes
            value = (logits * start).sum()
        if not value.requires_grad:
            raise BadInput(
                "model: its logits do not lead back to any parameter that has requires_grad, so that all gradients "
                "would be 0; forward computes under torch.no_grad or torch.inference_mode, or detaches: take that out"
            )
        grads = torch.autograd.grad(value, list(leaves.values()), allow_unused=True)
        slopes = {
            name: torch.stack([share(model, name, sizes[name], gradient, number) for number in range(DIRECTIONS)])
            for name, gradient in zip(leaves, grads, strict=True)
        }
        rounding = NOISE * torch.finfo(logits.dtype).eps * float((logits.detach() * start).abs().sum())
        return cls(model, sample, start, sizes, slopes, rounding)

    def wrong(self, names: Sequence[str]) -> Iterator[str]:
        """Yield those of ``names`` that have another derivative than autograd's, looking closer where some have."""
        if not self.differ(names, 1):
            return
        if len(names) > 1:
            half = len(names) // 2
            yield from self.wrong(names[:half])
            yield from self.wrong(names[half:])
        elif self.differ(names, DIRECTIONS) and not self.jumps(names):
            yield names[0]

    def differ(self, names: Sequence[str], directions: int) -> bool:
        """Say whether differences of all steps agree, and not with autograd, where ``names`` are moved together."""
        shares = torch.stack([self.slopes[name][:directions] for name in names])
        slope, allowed = shares.sum(0), APART[self.start.dtype] * float(shares.abs().sum(0).norm())
        steps, found = STEPS[self.start.dtype], []
        for step in steps:
            ahead, behind = (
                torch.stack([self.sums(names, number, signed).sum() for number in range(directions)])
                for signed in (step, -step)
            )
            found.append((ahead - behind) / (2 * step))
            if float((found[-1] - slope).norm()) <= allowed + self.rounding / step:
                return False
        off = min(float((each - slope).norm()) for each in found)
        spread = max(float((each - found[0]).norm()) for each in found)
        changed = any(float(each.norm()) > self.rounding / step for each, step in zip(found, steps, strict=True))
        return changed and spread < off / 2

    def jumps(self, names: Sequence[str]) -> bool:
        """Say whether the sum of a point jumps as ``names`` move: it changes by much however near two places are."""
        places = torch.linspace(-FAR, FAR, GRID, dtype=torch.float64).tolist()
        values = torch.stack([self.sums(names, 0, place) for place in places])
        bend = values.diff(n=2, dim=0).abs()
        middle, point = divmod(int(bend.argmax()), bend.shape[1])
        low, high = places[middle], places[middle + 2]
        left, right = values[middle, point], values[middle + 2, point]
        most = (values[middle : middle + 3, point].diff()).abs().max()
        for _ in range(HALVINGS):
            half = (low + high) / 2
            between = self.sums(names, 0, half)[point]
            if (between - left).abs() > (right - between).abs():
                high, right = half, between
            else:
                low, left = half, between
        return bool((right - left).abs() > JUMP * most)

    @torch.no_grad()
    def sums(self, names: Sequence[str], number: int, step: float) -> torch.Tensor:
        """Return the sum of each point (n,) with ``names`` moved by ``step`` along a direction."""
        weights = {
            name: moved(self.model, name, size, {number: step} if name in names else {})
            for name, size in self.sizes.items()
        }
        return (answer(self.model, self.sample, weights) * self.start).sum(1)


def sizes_of(model: nn.Module, wanted: tuple[str, ...]) -> dict[str, float]:
    """Return the root mean square of each parameter, or a share of the middle one where it is less."""
    found = torch.stack([model.get_parameter(name).detach().square().mean().sqrt() for name in wanted])
    some = found[found > 0]
    least = SMALL * float(some.median()) if len(some) else 1.0
    return {name: max(size, least) for name, size in zip(wanted, found.tolist(), strict=True)}


def moved(model: nn.Module, name: str, size: float, steps: dict[int, float]) -> torch.Tensor:
    """Return a parameter near its own values, moved by ``steps`` (direction → step of its ``size``) from there."""
    values = model.get_parameter(name).detach()
    for number, step in {DIRECTIONS: AWAY, **steps}.items():
        values = values + direction(model, name, number) * (step * size)
    return values


def share(model: nn.Module, name: str, size: float, gradient: torch.Tensor | None, number: int) -> torch.Tensor:
    """Return the part that a parameter with this ``gradient`` has in the derivative along a direction."""
    way = direction(model, name, number) * size
    return torch.zeros_like(way.sum()) if gradient is None else (gradient.to_dense() * way).sum()


def direction(model: nn.Module, name: str, number: int) -> torch.Tensor:
    """Return numbers between −1 and 1 like a parameter; 0 in rows of padding, which have no gradient on purpose."""
    parameter = model.get_parameter(name)
    places = torch.arange(1, parameter.numel() + 1, device=parameter.device, dtype=torch.float64)
    found = (places * (number + 1) + len(name)).cos().to(parameter.dtype).reshape(parameter.shape)
    for module in model.modules():
        padding = module.padding_idx if isinstance(module, nn.Embedding | nn.EmbeddingBag) else None
        if padding is not None and module.weight is parameter:
            found[padding] = 0
    return found
