"""Sets of weights in a checkpoint: every one that fits an architecture, whatever stands around it.

A checkpoint is read as one flat mapping of dotted names, so that a dict inside it, a wrapper and an attribute of a
training loop are the same thing: a prefix.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

State = dict[str, torch.Tensor]
Place = tuple[str, ...]
"""The keys of a tensor in nested dicts, from outside in."""

WRAPPERS = (
    "_orig_mod",
    "module",
    "_fsdp_wrapped_module",
    "_checkpoint_wrapped_module",
    "_forward_module",
)
"""What torch.compile, DataParallel, FSDP, activation checkpoints and Lightning's Fabric put into names."""
AVERAGED = re.compile(r"(^|_)(ema|shadow|averag\w*|swa)(_|$)")
"""Names of lists that hold averaged parameters in the order of the model's."""
NO_LAYER = ("total_ops", "total_params", "n_averaged", "num_batches_tracked", "position_ids")
"""Endings of counters (of thop, AveragedModel and BatchNorm) and of a table of places, which change no answer."""
LOSSES = re.compile(r"(criterion|loss|loss_fn|loss_fct|loss_func|loss_function)\d*", re.ASCII)
"""What a training calls its loss, whose buffers a model does not answer by."""
TOP = "."
"""The name of a set that stands under no prefix."""


@dataclass(frozen=True)
class Wanted:
    """The tensors of an architecture by name; ``parameters`` in order; ``same``: other names of the same tensor."""

    tensors: Mapping[str, torch.Tensor]
    parameters: tuple[str, ...]
    same: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, module: nn.Module) -> Wanted:
        """Return what ``module`` keeps in its state, tensors alone."""
        kept = module.state_dict(keep_vars=True)
        tensors = {name: value for name, value in kept.items() if isinstance(value, torch.Tensor)}
        by_id: dict[int, list[str]] = {}
        for name, value in tensors.items():
            by_id.setdefault(id(value), []).append(name)
        same = {name: tuple(names) for names in by_id.values() if len(names) > 1 for name in names}
        return cls(tensors, tuple(name for name, _ in module.named_parameters() if name in tensors), same)


@dataclass(frozen=True)
class Found:
    """Tensors of a checkpoint under one prefix, by the names that the architecture gives them.

    ``where``: the prefix, as a user writes it; ``left``: names of further tensors under it, which the architecture
    lacks; ``outside``: of tensors beside the prefix in the same dict. ``missing``, ``shaped``, ``strange``: names of
    tensors that are not there, that have another shape, and that are no plain tensors of the same kind of numbers.
    ``completed``: buffers that came from another set.
    """

    where: str
    state: State
    missing: tuple[str, ...] = ()
    shaped: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    outside: tuple[str, ...] = ()
    completed: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        """Whether every tensor of the architecture is there."""
        return not (self.missing or self.shaped or self.strange)


def sets_in(held: Any, wanted: Wanted) -> list[Found]:
    """Return what a checkpoint holds for an architecture under each prefix, the sets that fit first."""
    flat = dict(tensors_of(held))
    names = unwrapped(flat, wanted.tensors)
    places = {
        prefix: {own: names[prefix + own] for own in wanted.tensors if prefix + own in names}
        for prefix in Counter(prefix for name in names for prefix in prefixes_of(name, wanted.tensors))
    }
    sets = {
        prefix: compared(spelled(prefix), {own: flat[place] for own, place in each.items()}, wanted)
        for prefix, each in places.items()
    }
    read = {place for prefix, each in places.items() if sets[prefix].fits for place in each.values()}
    found = [with_left(each, prefix, places[prefix].values(), names, read) for prefix, each in sets.items()]
    found += [in_order(where, tensors, wanted) for where, tensors in lists_of(held)]
    whole = [each for each in found if each.fits]
    if len(whole) == 1:
        found = [completed(each, whole[0], wanted) for each in found]
    return sorted(found, key=lambda each: (not each.fits, len(each.missing) + len(each.shaped) + len(each.strange)))


def tensors_of(held: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[Place, torch.Tensor]]:
    """Yield the place, keys of nested dicts from outside in, and the tensor of each that a checkpoint holds by name."""
    if isinstance(held, Mapping):
        for key, value in held.items():
            if isinstance(value, torch.Tensor) and isinstance(key, str):
                yield (*path, key), value
            elif isinstance(value, Mapping | list | tuple):
                yield from tensors_of(value, (*path, str(key)))
    elif isinstance(held, list | tuple):
        for place, value in enumerate(held):
            if isinstance(value, Mapping):
                yield from tensors_of(value, (*path, str(place)))


def lists_of(held: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, list[torch.Tensor]]]:
    """Yield the place and the tensors of each list of averaged parameters."""
    inside = held.items() if isinstance(held, Mapping) else enumerate(held) if isinstance(held, list | tuple) else ()
    for key, value in inside:
        if isinstance(value, Mapping | list | tuple):
            here = (*path, str(key))
            if isinstance(value, list | tuple) and value and all(isinstance(each, torch.Tensor) for each in value):
                if any(AVERAGED.search(name) for name in here):
                    yield spelled(".".join(here)), list(value)
            else:
                yield from lists_of(value, here)


def unwrapped(places: Iterable[Place], own: Iterable[str]) -> dict[str, Place]:
    """Return dotted name → place, without what wrappers put into names, where that leaves every name its own.

    A wrapper's word that the architecture uses itself stays.
    """
    used = {part for name in own for part in name.split(".")}
    wrappers = [each for each in WRAPPERS if each not in used]
    plain = {place: ".".join(place) for place in places}
    short = {place: ".".join(part for part in name.split(".") if part not in wrappers) for place, name in plain.items()}
    counts = Counter(short.values())
    return {short[place] if counts[short[place]] == 1 else name: place for place, name in plain.items()}


def prefixes_of(name: str, wanted: Mapping[str, Any]) -> Iterator[str]:
    """Yield what may stand before a name of the architecture in ``name``, with its dot."""
    parts = name.split(".")
    for cut in range(len(parts)):
        if ".".join(parts[cut:]) in wanted:
            yield "".join(f"{part}." for part in parts[:cut])


def with_left(
    found: Found, prefix: str, own: Collection[Place], names: Mapping[str, Place], read: Collection[Place]
) -> Found:
    """Return a set, whose tensors stand at ``own``, with what no set that fits has of the same dicts."""
    dicts, taken = {place[:-1] for place in own}, {*own, *read}
    beside = {name: place for name, place in names.items() if place[:-1] in dicts and place not in taken}
    inside = tuple(name.removeprefix(prefix) for name in beside if name.startswith(prefix))
    return replace(
        found, left=inside, outside=tuple(p[-1] for name, p in beside.items() if not name.startswith(prefix))
    )


def in_order(where: str, tensors: list[torch.Tensor], wanted: Wanted) -> Found:
    """Return a list of averaged parameters, which stand in the order of the model's."""
    if len(tensors) != len(wanted.parameters):
        return Found(where, {}, missing=tuple(wanted.tensors))
    return compared(where, dict(zip(wanted.parameters, tensors, strict=True)), wanted)


def compared(where: str, state: State, wanted: Wanted) -> Found:
    """Return a set with what it lacks; a tensor that the file has under another of its names is there."""
    state = dict(state)
    for name, others in wanted.same.items():
        given = [state[each] for each in others if each in state]
        if name not in state and given:
            state[name] = given[0]
    there = {name: (state[name], own) for name, own in wanted.tensors.items() if name in state}
    shaped = tuple(name for name, (given, own) in there.items() if given.shape != own.shape)
    return Found(
        where,
        state,
        missing=tuple(name for name in wanted.tensors if name not in state and not optional(name)),
        shaped=shaped,
        strange=tuple(name for name, (given, own) in there.items() if name not in shaped and not alike(given, own)),
    )


def completed(part: Found, whole: Found, wanted: Wanted) -> Found:
    """Return a set of averaged parameters with the buffers of the only whole set; any other set as it is."""
    own = set(wanted.parameters) | {other for name in wanted.parameters for other in wanted.same.get(name, ())}
    if part.fits or part.shaped or part.strange or own & set(part.missing):
        return part
    buffers = {name: whole.state[name] for name in wanted.tensors if name not in part.state and name in whole.state}
    return replace(part, state={**part.state, **buffers}, missing=(), completed=tuple(buffers))


def no_layer(name: str) -> bool:
    """Say whether a tensor that an architecture lacks counts something, or belongs to the loss of a training."""
    *before, last = name.split(".")
    return last in NO_LAYER or any(LOSSES.fullmatch(part) for part in before)


def optional(name: str) -> bool:
    """Say whether a module works without a tensor: BatchNorm counts batches for its training only."""
    return name.rpartition(".")[2] == "num_batches_tracked"


def alike(given: torch.Tensor, own: torch.Tensor) -> bool:
    """Say whether a tensor can stand in the place of ``own``: laid out plainly, and both of floats or neither."""
    plain = given.layout == torch.strided and not (given.is_quantized or given.is_complex() or given.is_meta)
    return plain and given.is_floating_point() == own.is_floating_point()


def spelled(prefix: str) -> str:
    """Return a prefix as a user writes it behind the "#" of a file."""
    return prefix.strip(".").replace(".", "/") or TOP
