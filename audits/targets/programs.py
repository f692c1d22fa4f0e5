"""Given models that are programs: TorchScript, which runs what its file says, and ONNX graphs. Both run on the CPU."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from audits.errors import BadInput
from audits.extras import command
from audits.targets.forms import PART, file_and_part
from audits.targets.onnx_apart import GraphFailed, RuntimeMissing, Session

Run = Callable[[torch.Tensor], torch.Tensor]
LISTED = 3
TYPES = {
    "tensor(float)": torch.float32,
    "tensor(double)": torch.float64,
    "tensor(float16)": torch.float16,
    "tensor(int64)": torch.int64,
    "tensor(int32)": torch.int32,
    "tensor(int16)": torch.int16,
    "tensor(int8)": torch.int8,
    "tensor(uint8)": torch.uint8,
}
"""ONNX's names of the types that a graph's input may have."""
TRIED = (torch.float32, torch.float64, torch.float16, torch.int64, torch.int32)
"""Types that a TorchScript's inputs may have, which it does not declare; whole numbers only where the data are."""


def answers_of(run: Run) -> Callable[[torch.Tensor], list[Any]]:
    """Return what asks a program as a server is asked: each answer a number or a list of numbers, as it gave them."""

    @torch.no_grad()
    def ask(points: torch.Tensor) -> list[Any]:
        found: list[Any] = run(points.detach().cpu()).tolist()
        return found

    return ask


def torchscript(data: bytes, name: str) -> Run:
    """Return the program in an archive of TorchScript; who calls this has permission to run it."""
    module = script(data, name)
    known: list[torch.dtype] = []  # the type that it took

    def run(x: torch.Tensor) -> torch.Tensor:
        errors: dict[torch.dtype, Exception] = {}
        for dtype in known or TRIED:
            if not dtype.is_floating_point and strange(x, dtype):
                continue
            try:
                found = module(x.to(dtype))
            except Exception as error:  # a program may raise anything
                errors[dtype] = error
                continue
            known[:] = [dtype]
            return tensor_of(found, name)
        first = next(iter(errors.values()), None)
        if first is None or takes_ids(first):
            cast(x, torch.int64, name)  # says where the data are not whole
        raise not_run(name, x, errors.get(torch.int64, first) if takes_ids(first) else first)

    return run


def script(data: bytes, name: str) -> Any:
    """Return the module in an archive of TorchScript, in eval mode; who calls this has permission to run it."""
    try:
        return torch.jit.load(io.BytesIO(data), map_location="cpu").eval()
    except Exception as error:  # of torch's reader, whose errors have no class of their own
        raise BadInput(f"target.weights: {name} is no TorchScript that this torch reads: {first_line(error)}") from None


def takes_ids(error: Exception | None) -> bool:
    """Say whether a program asked for whole numbers and got floats, as an embedding does."""
    return error is not None and bool(re.search(r"\b(Long|Int|int64)\b", str(error)))


def strange(x: torch.Tensor, dtype: torch.dtype) -> list[float]:
    """Return the numbers of ``x`` that the integers ``dtype`` do not have."""
    found: list[float] = x[x.to(dtype).to(x.dtype) != x].tolist()
    return found


def cast(x: torch.Tensor, dtype: torch.dtype, name: str) -> torch.Tensor:
    """Return inputs as ``dtype``; BadInput for numbers that it does not have, where it is of integers."""
    if not dtype.is_floating_point and (wrong := strange(x, dtype)):
        raise BadInput(
            f"target.weights: {name} takes whole numbers ({str(dtype).removeprefix('torch.')}), and an input is "
            f"{wrong[0]:g}; give the data that it was trained on, token ids or categories, or a program that takes "
            "floats"
        )
    return x.to(dtype)


def tensor_of(found: Any, name: str) -> torch.Tensor:
    """Return the one tensor in what a program gave, or the one that ``name`` names behind "#": by place or by key.

    Raises BadInput where there is none, or more than one and none is named.
    """
    named = found if isinstance(found, Mapping) else getattr(found, "_asdict", dict)()
    inside = list(named.values() if named else found if isinstance(found, list | tuple) else [found])
    file, part = file_and_part(name)
    values = {str(place): value for place, value in enumerate(inside)} | {str(key): named[key] for key in named}
    value = inside[0] if part is None and len(inside) == 1 else values.get(part or "")
    if isinstance(value, torch.Tensor):
        return value
    keys = list(map(str, named)) if named else [str(place) for place in range(len(inside))]
    raise BadInput(
        f"target.weights: {name} returns {len(inside)} values ({', '.join(keys)}), not one tensor; name the tensor of "
        f"the logits: {file}{PART}{keys[0] if keys else 0}"
    )


def onnx(data: bytes, name: str) -> Run:
    """Return the program in an ONNX file, on the CPU; raises BadInput where it cannot be run, or not safely."""
    return graph(session_of(data, name), name)


def session_of(data: bytes, name: str) -> Session:
    """Return an ONNX file, ready to be run by onnxruntime."""
    try:
        return Session(data)
    except RuntimeMissing:
        raise BadInput(
            f"target.weights: {name} is an ONNX graph, for which onnxruntime is needed: {command('onnxruntime')}"
        ) from None
    except GraphFailed as error:
        outside = "external" in str(error).lower()
        what = (
            "keeps its weights in other files, which are not read; save it as one file"
            if outside
            else f"is no ONNX graph that onnxruntime reads: {first_line(error)}"
        )
        raise BadInput(f"target.weights: {name} {what}") from None


def graph(session: Session, name: str) -> Run:
    """Return what runs a session of onnxruntime; its batch axis may be free or fixed."""
    taken = input_of(session, name)
    output, dtype = output_of(session.get_outputs(), name), TYPES[taken.type]
    axis = taken.shape[0] if taken.shape else None
    size = axis if isinstance(axis, int) and axis > 0 else None

    def once(x: torch.Tensor) -> torch.Tensor:
        try:
            (found,) = session.run([output], {taken.name: x.numpy()})
        except GraphFailed as error:
            raise not_run(name, x, error) from None
        return torch.from_numpy(found)

    def run(x: torch.Tensor) -> torch.Tensor:
        x = cast(x, dtype, name)
        if size is None:
            return once(x)
        parts = []
        for part in x.split(size):
            short = size - len(part)  # the last inputs are asked with copies of one of them
            whole = torch.cat([part, part[-1:].expand(short, *part.shape[1:])]) if short else part
            parts.append(once(whole.contiguous())[: len(part)])
        return torch.cat(parts)

    return run


def input_of(session: Session, name: str) -> Any:
    """Return the one tensor that a graph takes: its ``name``, ``type`` and ``shape``."""
    inputs = session.get_inputs()
    if len(inputs) != 1 or inputs[0].type not in TYPES:
        told = ", ".join(f"{each.name}: {each.type}" for each in inputs)
        raise BadInput(f"target.weights: {name} takes {told}; a graph takes one tensor, the inputs: {', '.join(TYPES)}")
    return inputs[0]


def output_of(outputs: Sequence[Any], name: str) -> str:
    """Return the name of a graph's one output, or of the one that ``name`` names behind "#"."""
    file, part = file_and_part(name)
    found = [each for each in outputs if part is None or each.name == part]
    if len(found) != 1 or not is_numbers(found[0].type):
        told = ", ".join(f"{each.name}: {each.type}" for each in outputs)
        tensors = [each.name for each in outputs if is_numbers(each.type)]
        way = (
            " or ".join(f"{file}{PART}{each}" for each in tensors[:LISTED])
            if tensors
            else "none is a tensor of numbers"
        )
        raise BadInput(
            f"target.weights: {name} returns {told}; name the one tensor of its answers, {way}, or export a graph that "
            "returns the logits alone"
        )
    return str(found[0].name)


def is_numbers(kind: str) -> bool:
    """Say whether ``kind``, ONNX's name of the type of a value, is a tensor of numbers, which can be answers."""
    return kind.startswith("tensor(") and kind not in ("tensor(string)", "tensor(bool)")


RUNS: Mapping[str, Callable[[bytes, str], Run]] = {"torchscript": torchscript, "onnx": onnx}
"""Form → what makes a file of it run."""


def not_run(name: str, x: torch.Tensor, error: Exception | None) -> BadInput:
    """Return the error of a program that raised."""
    numbers = f" from {x.min():g} to {x.max():g}" if x.numel() else ""
    return BadInput(
        f"target.weights: {name} does not take inputs of shape {tuple(x.shape[1:])}{numbers}, {len(x)} at a time: "
        f"{first_line(error)}"
    )


def first_line(error: Exception | None) -> str:
    """Return the end of what a program's error says, where it names the cause, in at most 160 characters."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:160]
