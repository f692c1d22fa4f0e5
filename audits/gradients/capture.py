"""Inputs of a model's layers and gradients of their outputs: one forward and one backward pass for many points."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

from audits.errors import BadInput
from audits.gradients.layers import Call
from audits.gradients.model_copies import quiet

# Logits (n, classes) to the gradient at them, (n, classes).
Seeds = Callable[[torch.Tensor], torch.Tensor]


def logits_of(output: Any) -> torch.Tensor:
    """Return the logits (n, classes) of a model's answer; BadInput when it is something else."""
    found = getattr(output, "logits", output)
    if not isinstance(found, torch.Tensor) or found.ndim != 2:
        what = f"shape {tuple(found.shape)}" if isinstance(found, torch.Tensor) else f"a {type(found).__name__}"
        raise BadInput(f"model: it must return logits (points, classes), but returns {what}; wrap it in one that does")
    return found


def answer(model: nn.Module, x: torch.Tensor, weights: dict[str, torch.Tensor] | None = None) -> torch.Tensor:
    """Return the logits of ``x`` (n, ...), by ``weights`` in place of the model's own of the same names."""
    x = x.clone()  # the model may write into its input
    if weights is None:
        return logits_of(model(x))
    return logits_of(functional_call(model, everywhere(model, weights), (x,), tie_weights=False))


def everywhere(model: nn.Module, weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return ``weights`` under a name for every layer that holds them, of which tied ones have several.

    torch's own tying sees a layer under two names twice, and would leave ``weights`` in it afterwards.
    """
    given = {id(model.get_parameter(name)): weight for name, weight in weights.items()}
    found: dict[str, torch.Tensor] = {}
    for name, module in model.named_modules():
        for own, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            if id(parameter) in given:
                found[f"{name}.{own}" if name else own] = given[id(parameter)]
    return found


@contextmanager
def exact(device: torch.device) -> Iterator[None]:
    """Compute without autocast, without TF32 and with attention's ordinary code, which calls the layers inside it."""
    fast, tf32 = torch.backends.mha.get_fastpath_enabled(), torch.backends.cudnn.allow_tf32
    with ExitStack() as stack:
        stack.enter_context(quiet())
        stack.enter_context(torch.autocast(device.type, enabled=False))
        stack.callback(torch.backends.mha.set_fastpath_enabled, fast)
        torch.backends.mha.set_fastpath_enabled(False)
        if device.type == "cuda" and tf32:
            stack.callback(setattr, torch.backends.cudnn, "allow_tf32", tf32)
            torch.backends.cudnn.allow_tf32 = False
        yield


def calls_of(model: nn.Module, layers: Iterable[str], x: torch.Tensor, seeds: Seeds) -> dict[str, list[Call]]:
    """Return the calls of each layer (by name) in one pass of ``x`` (n, ...); a layer that is not called has none.

    No weight of ``model`` may need a gradient: autograd then keeps only what lies behind the first of ``layers``.
    """
    return calls_and_sums(model, layers, (), x, seeds, None)[0]


def calls_and_sums(
    model: nn.Module,
    layers: Iterable[str],
    parameters: Iterable[str],
    x: torch.Tensor,
    seeds: Seeds,
    weight: torch.Tensor | None,
) -> tuple[dict[str, list[Call]], dict[str, torch.Tensor]]:
    """Return what ``calls_of`` does, and autograd's gradient of Σ_i weight_i · seed_i·logits_i for ``parameters``.

    Both from one pass back. ``weight`` (n,): powers of two, so that no bit of the calls depends on them, or None for
    no sums; the sums are flat, name → (numbers,). No weight of ``model`` may need a gradient.
    """
    names, summed = list(layers), list(parameters)
    inputs: list[tuple[str, torch.Tensor]] = []
    taps: list[torch.Tensor] = []

    def tap(name: str) -> Callable[[nn.Module, tuple[Any, ...], dict[str, Any], torch.Tensor], torch.Tensor]:
        def hook(
            module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: torch.Tensor
        ) -> torch.Tensor:
            if output.dtype != module.get_parameter("weight").dtype:
                raise BadInput(f"model: layer {name} computes in {output.dtype}; {casts('forward may use autocast')}")
            inputs.append((name, (args[0] if args else kwargs["input"]).detach()))
            taps.append(torch.zeros_like(output, requires_grad=True))
            return output + taps[-1]  # not the output itself, which the model may overwrite

        return hook

    with ExitStack() as hooks, needing(model, summed), torch.enable_grad():
        for name in names:
            handle = model.get_submodule(name).register_forward_hook(tap(name), with_kwargs=True)
            hooks.callback(handle.remove)
        logits = answer(model, x)
        leaves = [model.get_parameter(name) for name in summed]
        found: dict[str, list[Call]] = {name: [] for name in names}
        if not taps or not logits.requires_grad:
            return found, {name: torch.zeros_like(leaf).flatten() for name, leaf in zip(summed, leaves, strict=True)}
        start = seeds(logits.detach()).to(logits.dtype)
        start = start if weight is None else start * weight[:, None]
        grads = torch.autograd.grad(logits, [*taps, *leaves], start, allow_unused=True, materialize_grads=True)
    for (name, seen), gradient in zip(inputs, grads[: len(taps)], strict=True):
        found[name].append(Call(seen, gradient if weight is None else unweighted(gradient, weight)))
    return found, {name: each.to_dense().flatten() for name, each in zip(summed, grads[len(taps) :], strict=True)}


def unweighted(gradient: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Return ``gradient`` (n, ...) over ``weight`` (n,) row by row; as it is where it has other rows than points."""
    if not gradient.ndim or len(gradient) != len(weight):
        return gradient
    return gradient / weight.reshape(-1, *[1] * (gradient.ndim - 1))


@contextmanager
def needing(model: nn.Module, parameters: Iterable[str]) -> Iterator[None]:
    """Let ``parameters`` of ``model``, of which none may need a gradient, need one meanwhile."""
    leaves = [model.get_parameter(name) for name in parameters]
    try:
        for leaf in leaves:
            leaf.requires_grad_(True)
        yield
    finally:
        for leaf in leaves:
            leaf.requires_grad_(False)


def casts(why: str) -> str:
    """Return what to do about numbers that are not of the type that was asked for."""
    return f"{why}; allowed: the type of the weights throughout: take the cast out, or use dtype=torch.float64"


def whole_rows(
    model: nn.Module, names: Iterable[str], x: torch.Tensor, seeds: Seeds, *, batched: bool
) -> dict[str, torch.Tensor]:
    """Return each point's gradient of whole parameters through the whole model, flat: name to (n, numbers).

    ``batched``: all points at once by ``vmap``, else one by one.
    """
    chosen = {name: model.get_parameter(name).detach() for name in names}
    with torch.no_grad():
        logits = answer(model, x)
        starts = seeds(logits).to(logits.dtype)

    def value(weights: dict[str, torch.Tensor], point: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        return (answer(model, point[None], weights)[0] * start).sum()

    if batched:
        found = vmap(grad(value), in_dims=(None, 0, 0))(chosen, x, starts)
        return {name: gradient.flatten(1) for name, gradient in found.items()}
    rows = [one_row(value, chosen, point, start) for point, start in zip(x, starts, strict=True)]
    return {name: torch.stack([row[name] for row in rows]) for name in chosen}


def one_row(
    value: Callable[[dict[str, torch.Tensor], torch.Tensor, torch.Tensor], torch.Tensor],
    weights: dict[str, torch.Tensor],
    point: torch.Tensor,
    start: torch.Tensor,
) -> dict[str, torch.Tensor]:
    """Return the gradient of ``value`` at one point by plain autograd, flat; zeros for weights that were not used."""
    leaves = {name: weight.clone().requires_grad_(True) for name, weight in weights.items()}
    with torch.enable_grad():
        result = value(leaves, point, start)
    if not result.requires_grad:
        return {name: torch.zeros_like(leaf).flatten() for name, leaf in leaves.items()}
    grads = torch.autograd.grad(result, list(leaves.values()), allow_unused=True, materialize_grads=True)
    return {name: gradient.to_dense().flatten() for name, gradient in zip(leaves, grads, strict=True)}
