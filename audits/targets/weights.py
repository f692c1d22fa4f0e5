"""The weights of a given model: a set of tensors in a file, checked against a module of the architecture it belongs to.

Nothing of a file is run (``checkpoint_files``). A file with several sets that fit is refused unless the name says which
is meant.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from audits.errors import BadInput, how_many
from audits.home import expanded
from audits.targets.checkpoint_files import read_held
from audits.targets.folders import passed_over
from audits.targets.forms import PART, file_and_part
from audits.targets.state_dicts import TOP, WRAPPERS, Found, Wanted, no_layer, optional, sets_in

USUAL = (TOP, "state_dict", "model_state_dict", "model", "net", "network", "state_dict/model", "state_dict/net")
"""Where the only weights of a checkpoint stand, without a need to say so."""
LISTED = 3


@dataclass(frozen=True)
class Weights:
    """Parameters and buffers of one model by name, as its module wants them, on the CPU; ``file`` is where they stood.

    ``notes``: what was changed in reading, a line each.
    """

    file: str
    state: Mapping[str, torch.Tensor] = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        """The sha256 (hex) of names, dtypes, shapes and values: equal for the same weights in other kinds of files."""
        found = hashlib.sha256()
        for name in sorted(self.state):
            tensor = self.state[name]
            found.update(json.dumps([name, str(tensor.dtype), list(tensor.shape)]).encode())
            found.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
        return found.hexdigest()


def read_weights(file: str, module: nn.Module) -> Weights:
    """Return the weights in ``file`` that fit ``module``, which may stand on any device, meta too, and is not changed.

    ``file`` is safetensors, a file of torch.save, or a folder of save_pretrained or one file of its model, whose names
    may begin in any way; of several sets that fit, "FILE#PART" names one. Half precision becomes float32; ``notes`` say
    that, and what was left out. Raises BadInput for a file that cannot be read or holds anything else, for names and
    shapes that are not the module's, for several sets that differ, and for values that are not finite.
    """
    name, part = file_and_part(file)
    path = expanded(name)
    held = read_held(path, name)
    wanted = Wanted.of(module)
    sets = sets_in(held, wanted)
    found = chosen(sets, part, name, held, wanted)
    check_same(found, wanted, file)
    left = left_out(found, part, file, wanted)
    state, cast = {}, dict[str, list[str]]()
    for key, own in wanted.tensors.items():
        if key not in found.state:
            state[key] = torch.zeros((), dtype=own.dtype)  # num_batches_tracked: see ``optional``
            continue
        given = found.state[key]
        if given.dtype != own.dtype:
            cast.setdefault(f"{given.dtype} is read as {own.dtype}".replace("torch.", ""), []).append(key)
        state[key] = given.detach().to(own.dtype).contiguous()
    check_finite({key: found.state[key] for key in wanted.tensors if key in found.state}, file)
    check_finite(state, file)
    casts = [f"{file}: {how} ({how_many(len(names), 'tensor')})" for how, names in cast.items()]
    return Weights(file, state, (*casts, *passed_over(path, name), *said_of(found, sets, part, file, left)))


def with_weights(module: nn.Module, state: Mapping[str, torch.Tensor]) -> nn.Module:
    """Return ``module`` itself with the weights of ``Weights.state``, in eval mode: running statistics are frozen."""
    module.load_state_dict(dict(state))
    return module.eval()


def chosen(sets: Sequence[Found], part: str | None, file: str, held: Any, wanted: Wanted) -> Found:
    """Return the set of weights that is meant: the one called ``part``, or the only one that fits."""
    if not sets:
        raise nothing_in(held, file, wanted)
    fitting = [each for each in sets if each.fits]
    if part is not None:
        named = [each for each in sets if is_called(each, part)]
        if not named:
            others = f"it has {names_of(fitting, file)}" if fitting else f"write {file} alone"
            raise BadInput(f"{file} has no weights of the architecture under {part!r}; {others}")
        fitting = [each for each in named if each.fits] or named[:1]
    if not fitting:
        fitting = list(sets[:1])
    if not fitting[0].fits:
        raise not_fitting(fitting[0], file, wanted)
    if len(distinct := different(fitting, wanted)) > 1:
        raise BadInput(
            f"{file} holds {len(distinct)} sets of weights that fit the architecture and differ "
            f"({', '.join(each.where for each in distinct)}); say which is meant: {names_of(distinct, file)}"
        )
    return fitting[0]


def is_called(found: Found, part: str) -> bool:
    """Say whether a user who writes ``part`` means a set, or the dict that it stands in."""
    words = [word for word in part.replace(".", "/").split("/") if word and word not in WRAPPERS]
    own = [] if found.where == TOP else found.where.split("/")
    return own[: len(words)] == words and (bool(words) or not own)


def names_of(sets: Iterable[Found], file: str) -> str:
    """Return how a user names each of several sets."""
    return " or ".join(f"{file}{PART}{each.where}" for each in sets)


def different(sets: Sequence[Found], wanted: Wanted) -> list[Found]:
    """Return the first of each group of sets with the same numbers, buffers included."""
    names = [name for name in wanted.tensors if not optional(name)]
    found: list[Found] = []
    for each in sets:
        if not any(all(equal(each.state[name], other.state[name]) for name in names) for other in found):
            found.append(each)
    return found


def equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Say whether two tensors hold the same numbers in the same type."""
    return one.dtype == other.dtype and torch.equal(one, other)


def check_same(found: Found, wanted: Wanted, file: str) -> None:
    """Refuse two values for what is one tensor in the architecture, of which the later one would count."""
    for name, others in wanted.same.items():
        for other in others:
            if not equal(found.state[name], found.state[other]):
                raise BadInput(
                    f"{file}: {name} and {other} differ, which are one tensor in the architecture; give the one that "
                    "does not tie them, or weights of this one"
                )


def left_out(found: Found, part: str | None, file: str, wanted: Wanted) -> list[str]:
    """Return the tensors beside a set that are not read; raises BadInput for those that a model may answer by.

    Not read are counters, buffers of a loss and, of a set that the user has named, all that is beside its prefix.
    """
    inside = [name for name in found.left if not no_layer(name)]
    outside = [] if part is not None else [name for name in found.outside if not no_layer(name)]
    if not inside and not outside:
        return [*found.left, *found.outside]
    way = (
        "give the architecture that has them, or save the weights without them"
        if inside
        else f"if the model answers without them, write {file}{PART}{found.where}"
    )
    raise BadInput(
        f"{file} does not fit the architecture of the section model: it holds all of its {len(wanted.tensors)} "
        f"tensors, and {len(inside + outside)} not in the architecture ({first(inside + outside)}); {way}"
    )


def said_of(found: Found, sets: Sequence[Found], part: str | None, file: str, left: Sequence[str]) -> Iterable[str]:
    """Yield a line for what a reader must know of what was read, and what was not."""
    others = [each.where for each in sets if each.fits and each.where != found.where]
    if part is not None or others or found.where not in USUAL:
        beside = f"; it also holds {', '.join(others)}" if others else ""
        yield f"{file}: the weights under {found.where} are read{beside}"
    if found.completed:
        are = "buffer is that" if len(found.completed) == 1 else "buffers are those"
        yield f"{file}: {len(found.completed)} {are} of the other weights ({first(found.completed)})"
    if left:
        are = "is" if len(left) == 1 else "are"
        no_layers = f"{how_many(len(left), 'tensor')} that {are} no layer of the architecture {are} left out"
        yield f"{file}: {no_layers} ({first(left)})"


def nothing_in(held: Any, file: str, wanted: Wanted) -> BadInput:
    """Return the error of a file without any tensor of the architecture."""
    if isinstance(held, Mapping) and any(isinstance(value, torch.Tensor) for value in held.values()):
        return not_fitting(Found(TOP, {}, tuple(wanted.tensors), left=tuple(map(str, held))), file, wanted)
    inside = [name for name, value in held.items() if isinstance(value, Mapping)] if isinstance(held, Mapping) else []
    for name in inside:
        if any(isinstance(value, torch.Tensor) for value in held[name].values()):
            return not_fitting(Found(str(name), {}, tuple(wanted.tensors), left=tuple(held[name])), file, wanted)
    has = f"a dict with {first(held)}" if isinstance(held, Mapping) and held else f"a {type(held).__name__}"
    return BadInput(f"{file} holds {has}; allowed: a state dict (name → tensor), alone or in a dict")


def not_fitting(found: Found, file: str, wanted: Wanted) -> BadInput:
    """Return the error of tensors that are missing, too many, or of other shapes and kinds of numbers."""
    problems = {
        "missing": found.missing,
        "not in the architecture": [name for name in found.left if not no_layer(name)],
        "of another shape": [
            f"{name} {list(found.state[name].shape)} for {list(wanted.tensors[name].shape)}" for name in found.shaped
        ],
        "no plain tensors of real numbers": found.strange,
    }
    said = [f"{len(names)} {what} ({first(names)})" for what, names in problems.items() if names]
    return BadInput(
        f"{file} does not fit the architecture of the section model: of {len(wanted.tensors)} tensors "
        f"{'; '.join(said)}; give the architecture and settings that these weights were trained with"
    )


def check_finite(state: Mapping[str, torch.Tensor], file: str) -> None:
    """Refuse weights that are NaN or infinite, as read or after a cast."""
    for name, tensor in state.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            bad = int((~torch.isfinite(tensor)).sum())
            raise BadInput(
                f"{file}: {name} has {bad} of {tensor.numel()} values that are NaN or infinite; its training diverged, "
                "give an earlier checkpoint"
            )


def first(names: Iterable[Any]) -> str:
    """Return the first of ``names``, and how many more there are."""
    listed = [str(name) for name in names]
    more = f" and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    return ", ".join(listed[:LISTED]) + more


def notes_of(checkpoints: Sequence[Weights]) -> tuple[str, ...]:
    """Return what was changed in reading ``checkpoints``."""
    return tuple(note for weights in checkpoints for note in weights.notes)
