"""The weights of a given model: a state dict in a file, checked against a module of the architecture it belongs to.

Nothing of a file is run: safetensors holds tensors alone, and torch reads its own format with ``weights_only=True``.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import warnings
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from torch import nn

from audits.errors import BadInput

SAFETENSORS, PICKLED = (".safetensors",), (".pt", ".pth")
MOST_BYTES = 2**35
"""Of one file, unpacked: 32 GiB, a model of eight billion float32 parameters."""
INSIDE = ("state_dict", "model_state_dict", "model")
"""Where a checkpoint of a training keeps its state dict."""
COMPILED = "_orig_mod."
"""What torch.compile puts before the names of parameters."""
HALVES = (torch.float16, torch.bfloat16)
UNSUPPORTED = "Unsupported operand"
"""What torch says of bytes that are no pickle; in others it names what is more than tensors."""
LISTED = 3
SAVE = "torch.save(model.state_dict(), 'weights.pt')"

State = dict[str, torch.Tensor]


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

    ``file`` is a state dict (.safetensors, .pt, .pth), or a dict that holds one under ``state_dict``,
    ``model_state_dict`` or ``model``; names may begin as wrappers write them (``unwrapped``). Half precision
    becomes float32, which ``notes`` say. Raises BadInput for a file that cannot be read or holds anything else, for
    names and shapes that are not the module's, and for values that are not finite.
    """
    path = Path(file).expanduser()
    check_size(path, file)
    found = read_safetensors(path, file) if path.suffix in SAFETENSORS else read_checkpoint(path, file)
    wanted = {name: tensor for name, tensor in module.state_dict().items() if isinstance(tensor, torch.Tensor)}
    found = unwrapped(found, wanted)
    check_fit(found, wanted, file)
    state, cast = {}, dict[str, list[str]]()
    for name, own in wanted.items():
        if name not in found:
            state[name] = torch.zeros((), dtype=own.dtype)  # num_batches_tracked: see ``optional``
            continue
        given = found[name]
        if given.dtype != own.dtype:
            cast.setdefault(f"{given.dtype} is read as {own.dtype}".replace("torch.", ""), []).append(name)
        state[name] = given.detach().to(own.dtype).contiguous()
    check_finite(found, file)
    check_finite(state, file)
    return Weights(file, state, tuple(f"{file}: {how} ({len(names)} tensors)" for how, names in cast.items()))


def with_weights(module: nn.Module, state: Mapping[str, torch.Tensor]) -> nn.Module:
    """Return ``module`` itself with the weights of ``Weights.state``, in eval mode: running statistics are frozen."""
    module.load_state_dict(dict(state))
    return module.eval()


def check_size(path: Path, file: str) -> None:
    """Refuse a file of another kind, that is not there, or that would become too large."""
    if path.suffix == ".onnx":
        raise BadInput(
            f"{file} is an ONNX graph, whose layers and gradients cannot be read; save the weights where the model was "
            f"made: {SAVE}"
        )
    if path.suffix not in (*SAFETENSORS, *PICKLED):
        raise BadInput(
            f"{file} ends in {path.suffix or 'nothing'}; allowed: a state dict in {', '.join((*SAFETENSORS, *PICKLED))}"
        )
    check_bytes(path, file)


def check_bytes(path: Path, file: str) -> None:
    """Refuse a file that is not there, or that would become too large."""
    try:
        size = path.stat().st_size
        with path.open("rb"):
            pass
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                size = max(size, sum(entry.file_size for entry in archive.infolist()))
    except (OSError, zipfile.BadZipFile) as error:
        raise BadInput(f"{file} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if size > MOST_BYTES:
        raise BadInput(f"{file} holds {size / 2**30:.0f} GiB; allowed: up to {MOST_BYTES / 2**30:.0f} GiB")


def read_safetensors(path: Path, file: str) -> State:
    """Return the tensors of a safetensors file."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        return dict(load_file(path))
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise BadInput(
            f"{file} is not safetensors ({one_line(error)}); save it with safetensors.torch.save_file"
        ) from None


def read_checkpoint(path: Path, file: str) -> State:
    """Return the state dict of a file that torch.save wrote, nothing of which is run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a TorchScript archive, which is refused below
            held = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        if UNSUPPORTED in str(error):
            raise not_saved(file, error) from None
        raise BadInput(
            f"{file} holds more than tensors, such as a whole pickled model, and reading that runs code of the file; "
            f"save the weights alone where the model was made: {SAVE}"
        ) from None
    except Exception as error:  # of torch's reader, whose errors have no class of their own
        if "TorchScript" in str(error):
            raise BadInput(
                f"{file} is a TorchScript program, whose layers and gradients cannot be read; save the weights where "
                f"the model was made: {SAVE}"
            ) from None
        raise not_saved(file, error) from None
    return state_in(held, file)


def not_saved(file: str, error: Exception) -> BadInput:
    """Return the error of a file that torch.save did not write, or not to its end."""
    said = UNSUPPORTED if UNSUPPORTED in str(error) else one_line(error)
    return BadInput(f"{file} cannot be read as a file of torch.save ({said}); {SAVE} writes one")


def state_in(held: Any, file: str) -> State:
    """Return the state dict that a file holds, itself or one level below."""
    if is_state(held):
        return dict(held)
    inside = [name for name in INSIDE if isinstance(held, Mapping) and is_state(held.get(name))]
    if inside:
        return dict(held[inside[0]])
    has = f"a dict with {first(held)}" if isinstance(held, Mapping) and held else f"a {type(held).__name__}"
    raise BadInput(
        f"{file} holds {has}; allowed: a state dict (name → tensor), or a dict that has one under {', '.join(INSIDE)}"
    )


def is_state(value: Any) -> bool:
    """Say whether ``value`` is a state dict: names and tensors alone."""
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(isinstance(name, str) and isinstance(each, torch.Tensor) for name, each in value.items())
    )


def unwrapped(found: State, wanted: Iterable[str]) -> State:
    """Return tensors under the names that the module itself gives them, without those of wrappers around it.

    That is "module." of DataParallel, "model." or "net." of many a training loop, and what torch.compile adds.
    """
    own = set(wanted)
    if not any(COMPILED in name for name in own):
        found = {name.replace(COMPILED, ""): tensor for name, tensor in found.items()}
    while found and not own & set(found):
        first, dot, _ = next(iter(found)).partition(".")
        if not dot or not all(name.startswith(first + dot) for name in found):
            break
        found = {name.removeprefix(first + dot): tensor for name, tensor in found.items()}
    return found


def check_fit(found: State, wanted: Mapping[str, torch.Tensor], file: str) -> None:
    """Refuse tensors that are missing, that the module has no place for, or of other shapes and kinds of numbers."""
    shaped = {name: f"{name} {list(found[name].shape)} for {list(own.shape)}" for name, own in wanted.items() if
              name in found and found[name].shape != own.shape}  # fmt: skip
    other = [name for name in wanted if name in found and not alike(found[name], wanted[name])]
    problems = {
        "missing": [name for name in wanted if name not in found and not optional(name)],
        "not in the architecture": [name for name in found if name not in wanted],
        "of another shape": list(shaped.values()),
        "no plain tensors of real numbers": [name for name in other if name not in shaped],
    }
    said = [f"{len(names)} {what} ({first(names)})" for what, names in problems.items() if names]
    if said:
        raise BadInput(
            f"{file} does not fit the architecture of the section model: of {len(wanted)} tensors "
            f"{'; '.join(said)}; give the architecture and settings that these weights were trained with"
        )


def optional(name: str) -> bool:
    """Say whether a module works without a tensor: BatchNorm counts batches for its training only."""
    return name.rpartition(".")[2] == "num_batches_tracked"


def alike(given: torch.Tensor, own: torch.Tensor) -> bool:
    """Say whether a tensor can stand in the place of ``own``: laid out plainly, and both of floats or neither."""
    plain = given.layout == torch.strided and not given.is_quantized and not given.is_complex()
    return plain and given.is_floating_point() == own.is_floating_point()


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


def one_line(error: Exception) -> str:
    """Return the first sentence of what an error says."""
    return shorten(" ".join(str(error).split()).partition(". ")[0], 120, placeholder=" …") or type(error).__name__


def notes_of(checkpoints: Sequence[Weights]) -> tuple[str, ...]:
    """Return what was changed in reading ``checkpoints``."""
    return tuple(note for weights in checkpoints for note in weights.notes)
