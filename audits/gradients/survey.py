"""A survey of a model: layers whose inputs give their gradients, and parameters that need a pass for each point.

A layer is read by hooks only after its rule gave, on two points, the gradients that autograd gives to each point alone,
and on more points together a weighted sum of them (``attribution``). That sorts out weights that are used without
calling their layer (attention), tied weights, and layers that do not keep the points in the first axis or do not see
them in their order; their parameters are read through the whole model, which is slower and always right.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from audits.data.tensors import as_float
from audits.errors import BadInput
from audits.gradients.attribution import TOLERANCE, misread
from audits.gradients.capture import answer, calls_of, casts, exact, whole_rows
from audits.gradients.layers import Call, OuterRule, rule_of
from audits.gradients.model_copies import computing_in, contiguous
from audits.gradients.reached import check_reached
from audits.gradients.residuals import Loss, Residual, residual_of
from audits.gradients.validate import check_alone, check_auditable, check_labels, check_points, copied
from audits.models.recurrent import differentiable

DTYPES = (torch.float32, torch.float64)
PROBE = 2  # points that layers are tried on, each alone
SAMPLE = 16  # points that they are tried on together, spread over all


@dataclass(frozen=True)
class Tapped:
    """A layer that is read by hooks: ``parameters`` maps its own names to the model's; the rest is of one point.

    ``positions`` and ``ghost_numbers`` (numbers of a and b at one position) are 0 for layers that are no ``OuterRule``.
    """

    module: str
    parameters: dict[str, str]
    positions: int
    ghost_numbers: int


@dataclass(frozen=True)
class Survey:
    """A model laid out for reading: ``model`` is a copy whose weights need no gradient, on ``device`` in ``dtype``.

    ``wanted``: parameters that count, in the model's order. ``tapped``: layers read by hooks. ``whole``: the other
    parameters. ``batched``: whether vmap reads those rightly. ``refuted``: layers whose rule was seen to be wrong; of
    others that are not tapped nothing is known, since the points tried have no gradient there.
    """

    model: nn.Module
    residual: Residual
    dtype: torch.dtype
    device: torch.device
    wanted: tuple[str, ...]
    tapped: tuple[Tapped, ...]
    whole: tuple[str, ...]
    batched: bool
    refuted: frozenset[str] = frozenset()

    def points(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return points as the copy reads them: on its device, images and floats in its dtype.

        Labels keep their dtype if they are floats, which a loss of one's own may ask for; integers become int64.
        """
        y = y.detach().to(self.device)
        labels = y if y.is_floating_point() or y.is_complex() else y.long()
        return prepared(x, self.device, self.dtype), labels


@contextmanager
def surveyed(
    model: nn.Module,
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    loss: str | Loss = "cross_entropy",
    dtype: torch.dtype = torch.float64,
    device: torch.device | str | None = None,
    chunk: int = SAMPLE,
) -> Iterator[Survey]:
    """Check model and points and yield how each parameter is read, with torch set to compute exactly meanwhile.

    ``model`` itself is only copied. ``device``: where to compute; default, where the model stands. ``chunk``: the most
    points that may go through the model together. Raises BadInput for what ``validate`` refuses.
    """
    if dtype not in DTYPES:
        raise BadInput(f"dtype is {dtype}; allowed: torch.float64, or torch.float32 for speed")
    residual = residual_of(loss)
    check_auditable(model)
    check_points(x, y)
    where = checked_device(device) if device is not None else next(model.parameters()).device
    with exact(where):
        wanted = tuple(name for name, parameter in model.named_parameters() if parameter.requires_grad)
        twin = differentiable(computing_in(copied(model, contiguous).to(where), dtype)).requires_grad_(False)
        probe = prepared(x[:PROBE], where, dtype)
        sample = prepared(x[spread(len(x), min(SAMPLE, chunk))], where, dtype)
        logits = checked_answers(twin, probe)
        checked_answers(twin, sample)
        if loss == "cross_entropy":
            check_labels(y, logits.shape[1])
        start = torch.arange(1, logits.shape[1] + 1, device=where, dtype=dtype).cos().expand_as(logits)
        with refused_checkpoints():
            truth = references(twin, wanted, probe, start)
            check_reached(twin, wanted, sample)
            layers, refuted = trusted(twin, wanted, probe, start, truth)
            owned = {layer.module: layer.parameters for layer in layers}
            wrong = misread(twin, owned, sample, start[0], TOLERANCE[dtype])
            tapped = tuple(layer for layer in layers if layer.module not in wrong)
            read = {name for layer in tapped for name in layer.parameters.values()}
            whole = tuple(name for name in wanted if name not in read)
            batched = bool(whole) and vmap_works(twin, whole, probe, start, truth)
        yield Survey(twin, residual, dtype, where, wanted, tapped, whole, batched, frozenset(refuted | wrong))


@contextmanager
def refused_checkpoints() -> Iterator[None]:
    """Raise BadInput where layers compute their outputs again on the way back, by weights that are not those asked."""
    try:
        yield
    except RuntimeError as error:
        if "torch.utils.checkpoint" not in str(error):
            raise
        raise BadInput(
            "model: it computes layers again by torch.utils.checkpoint, where no gradient of single points can be "
            "taken; turn checkpointing off (gradient_checkpointing_disable() in transformers)"
        ) from error


def checked_device(device: torch.device | str) -> torch.device:
    """Return ``device`` as torch's; BadInput for one that is not here."""
    try:
        found = torch.device(device)
        torch.zeros(1, device=found).item()  # no numbers are held by device meta
    except (RuntimeError, AssertionError) as error:
        reason = " ".join(str(error).split())[:120]
        raise BadInput(
            f"device is {str(device)!r}: {reason}; allowed: cpu, or an accelerator of this machine"
        ) from error
    return found


def spread(points: int, most: int) -> list[int]:
    """Return the indices of ``most`` of N ``points``, two or more, spread over all; a single point counts twice."""
    count = max(PROBE, min(most, points))
    return [index * (points - 1) // (count - 1) for index in range(count)]


def checked_answers(model: nn.Module, points: torch.Tensor) -> torch.Tensor:
    """Return the logits of ``points`` together; BadInput unless those asked alone, up to four, have the same ones."""
    asked = spread(len(points), 4)
    with torch.no_grad():
        try:
            together = answer(model, points)
        except (BadInput, torch.OutOfMemoryError):
            raise
        except (RuntimeError, TypeError, IndexError, ValueError) as error:
            reason = " ".join(str(error).split())[:120]
            raise BadInput(
                f"model: it cannot answer points of shape {tuple(points.shape[1:])} and {points.dtype} ({reason}); "
                "give x as the model was trained on it"
            ) from error
        try:
            alone = torch.cat([answer(model, points[index : index + 1]) for index in asked])
        except BadInput:
            raise
        except ValueError as error:  # torch's own check of norms whose groups hold one number
            reason = " ".join(str(error).split())[:120]
            raise BadInput(f"model: it cannot answer one point alone ({reason}); give it larger inputs") from error
    if together.dtype != next(model.parameters()).dtype:
        raise BadInput(f"model: its logits are {together.dtype}; {casts('forward casts them')}")
    check_alone(together[asked] if len(together) == len(points) else together, alone)
    return together


def prepared(x: torch.Tensor, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """Return inputs on ``device``: bytes as images in [0, 1], floats in ``dtype``, tokens unchanged."""
    x = as_float(x.detach().to(device))
    return x.to(dtype).contiguous() if x.is_floating_point() else x


def references(
    model: nn.Module, wanted: tuple[str, ...], probe: torch.Tensor, start: torch.Tensor
) -> dict[str, torch.Tensor]:
    """Return each probe point's gradient of start·logits by plain autograd, one point a pass: name to (2, numbers)."""
    found = whole_rows(model, wanted, probe, lambda logits: start, batched=False)
    return {name: rows.detach() for name, rows in found.items()}


def trusted(
    model: nn.Module,
    wanted: tuple[str, ...],
    probe: torch.Tensor,
    start: torch.Tensor,
    truth: dict[str, torch.Tensor],
) -> tuple[list[Tapped], set[str]]:
    """Return the layers whose rules reproduce ``truth`` on the probe points, and the names of those that do not.

    Layers with no gradient at all there are in neither.
    """
    names = {id(parameter): name for name, parameter in model.named_parameters()}
    owned: dict[str, dict[str, str]] = {}
    for module_name, module in model.named_modules():
        own = {own: names[id(parameter)] for own, parameter in module.named_parameters(recurse=False)}
        own = {own_name: full for own_name, full in own.items() if full in wanted}
        if own and rule_of(module) is not None and plain(module):
            owned[module_name] = own
    calls = calls_of(model, owned, probe, lambda logits: start)
    agreed = {name: agrees(model, name, own, calls[name], truth) for name, own in owned.items()}
    return (
        [layer_of(model, name, own, calls[name]) for name, own in owned.items() if agreed[name]],
        {name for name, yes in agreed.items() if yes is False},
    )


def plain(module: nn.Module) -> bool:
    """Say whether a layer's parameters are its weight and bias themselves, not what a hook makes these of."""
    names = {name for name, _ in module.named_parameters(recurse=False)}
    return "weight" in names and names <= {"weight", "bias"}


def agrees(
    model: nn.Module, name: str, own: dict[str, str], calls: list[Call], truth: dict[str, torch.Tensor]
) -> bool | None:
    """Say whether a layer's rule gives every parameter's true gradient; None, unknown, where there is none to see."""
    module = model.get_submodule(name)
    rule = rule_of(module)
    assert rule is not None
    dead = not any(bool(truth[full].any()) for full in own.values())
    if not calls:
        return None if dead else False
    if not all(rule.reads(module, call, PROBE) for call in calls):
        return False
    found = {full: torch.stack([rule.rows(module, call, name) for call in calls]).sum(0) for name, full in own.items()}
    if any(found[full].shape != truth[full].shape for full in found):
        return False
    if dead and not any(bool(rows.any()) for rows in found.values()):
        return None
    return close(found, truth)


def layer_of(model: nn.Module, name: str, own: dict[str, str], calls: list[Call]) -> Tapped:
    """Return the layer with its sizes at one point."""
    module = model.get_submodule(name)
    rule = rule_of(module)
    if not isinstance(rule, OuterRule):
        return Tapped(name, own, 0, 0)
    factors = [rule.factors(module, call) for call in calls]
    return Tapped(name, own, sum(a.shape[2] for a, _ in factors), rule.ghost_numbers(module, *factors[0]))


def vmap_works(
    model: nn.Module, names: tuple[str, ...], probe: torch.Tensor, start: torch.Tensor, truth: dict[str, torch.Tensor]
) -> bool:
    """Say whether vmap can run the model and gives the true gradients; some operations have no batching rule."""
    try:
        found = whole_rows(model, names, probe, lambda logits: start, batched=True)
    except (RuntimeError, ValueError, NotImplementedError):
        return False
    return close(found, truth)


def close(found: dict[str, torch.Tensor], truth: dict[str, torch.Tensor]) -> bool:
    """Say whether gradients are the true ones, to rounding of the largest; no where all true ones are zero."""
    largest = torch.stack([truth[name].abs().max() for name in found]).max()
    apart = torch.stack([(rows - truth[name]).abs().max() for name, rows in found.items()]).max()
    scale, worst = torch.stack([largest, apart.to(largest)]).tolist()  # a GPU is waited for once
    return bool(scale > 0 and worst <= TOLERANCE[next(iter(found.values())).dtype] * scale)
