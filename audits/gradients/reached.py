"""Whether autograd reaches every parameter that a model answers by.

A layer that computes under ``torch.no_grad``, or whose output is detached, has no gradient, though the loss depends on
it: a Gram matrix would be that of the other layers, silently. A parameter, or one call of a layer, is refused if it is
not in the graph of the logits and a small change of it changes them. One that the logits do not depend on, such as the
head of another task, has the gradient 0 that it should have; so has a gate that chooses by a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from audits.errors import BadInput
from audits.gradients.attribution import uses_of
from audits.gradients.capture import answer, needing

STEP = {torch.float32: 1e-2, torch.float64: 1e-5}
"""A small change, of the size of the values that are changed."""
SEEN = {torch.float32: 1e-5, torch.float64: 1e-11}
"""What logits change by if they depend on these values, of the largest logit."""
LISTED = 3

Change = Callable[[int, torch.Tensor], torch.Tensor]


def check_reached(model: nn.Module, wanted: tuple[str, ...], sample: torch.Tensor) -> None:
    """Refuse a model that answers the points ``sample`` by parameters, of those ``wanted``, that get no gradient.

    No weight of ``model`` may need a gradient. Costs one pass, and for what the graph lacks one or two more each.
    """
    lost, calls = unreached(model, wanted, sample)
    if not lost and not calls:
        return
    with torch.no_grad():
        logits = answer(model, sample)
        scale = SEEN[logits.dtype] * float(logits.abs().max())

        def differs(names: list[str], places: list[int]) -> bool:
            found = answered_with(model, wanted, sample, names, places)
            return not float((found - logits).abs().max()) <= scale

        if not differs(lost, list(calls)):
            return
        layers = {calls[place]: [place] for place in calls}
        named = [name for name in lost if differs([name], [])] + [
            f"those of layer {layer}" for layer, places in layers.items() if differs([], places)
        ]
    more = f" and {len(named) - LISTED} more" if len(named) > LISTED else ""
    raise BadInput(
        f"model: it answers by parameters that get no gradient ({', '.join(named[:LISTED])}{more}), as if they were "
        "constants; forward computes with them under torch.no_grad or torch.inference_mode, or detaches: take that "
        "out, or, if they were frozen in the training, set requires_grad_(False) on them"
    )


def unreached(model: nn.Module, wanted: tuple[str, ...], sample: torch.Tensor) -> tuple[list[str], dict[int, str]]:
    """Return the parameters, and the calls of layers (number of the call → layer), that the logits' graph lacks.

    Raises BadInput where it lacks all parameters.
    """
    taps: list[torch.Tensor] = []
    names: list[str] = []

    def tapped(place: int, output: torch.Tensor) -> torch.Tensor:
        with torch.inference_mode(False):
            taps.append(torch.zeros((), dtype=output.dtype, device=output.device, requires_grad=True))
        return output + taps[-1]

    with needing(model, wanted), torch.enable_grad():
        with calls_changed(model, wanted, tapped, names):
            value = answer(model, sample)
        leaves = {name: model.get_parameter(name) for name in wanted}
        uses = uses_of(value, [*leaves.values(), *taps])
    lost = [name for name, leaf in leaves.items() if not uses[id(leaf)]]
    if len(lost) == len(wanted):
        raise BadInput(
            "model: its logits do not lead back to any parameter that has requires_grad, so that all gradients would "
            "be 0; forward computes under torch.no_grad or torch.inference_mode, or detaches: take that out"
        )
    own = {name.rpartition(".")[0] for name in lost}
    calls = {place: names[place] for place, tap in enumerate(taps) if not uses[id(tap)]}
    return lost, {place: layer for place, layer in calls.items() if layer not in own}


def answered_with(
    model: nn.Module, wanted: tuple[str, ...], sample: torch.Tensor, names: list[str], places: list[int]
) -> torch.Tensor:
    """Return the logits with the parameters ``names``, and the outputs of the calls ``places``, changed a little."""

    def changed(place: int, output: torch.Tensor) -> torch.Tensor:
        return shifted(output) if place in places else output

    with calls_changed(model, wanted, changed, []):
        return answer(model, sample, {name: shifted(model.get_parameter(name)) for name in names})


def shifted(values: torch.Tensor) -> torch.Tensor:
    """Return ``values`` with another small number added to each."""
    wave = torch.arange(1, values.numel() + 1, device=values.device, dtype=torch.float64).cos().reshape(values.shape)
    size = STEP[values.dtype] * values.detach().abs().max().clamp(min=STEP[values.dtype])
    return values.detach() + wave.to(values.dtype) * size


@contextmanager
def calls_changed(model: nn.Module, wanted: tuple[str, ...], change: Change, names: list[str]) -> Iterator[None]:
    """Let ``change`` replace the output of each call of a layer that owns one of ``wanted``, by the call's number.

    Calls are numbered from 0; ``names`` gets the layer of each. Outputs that are no tensors of floats are left alone.
    """
    owners = {name.rpartition(".")[0] for name in wanted}

    def hook_of(layer: str) -> Callable[[nn.Module, tuple[Any, ...], Any], Any]:
        def hook(module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
            if not isinstance(output, torch.Tensor) or output.dtype not in STEP:
                return output
            names.append(layer)
            return change(len(names) - 1, output)

        return hook

    with ExitStack() as hooks:
        for layer in sorted(owners - {""}):  # of the model itself the logits are the output
            hooks.callback(model.get_submodule(layer).register_forward_hook(hook_of(layer)).remove)
        yield
