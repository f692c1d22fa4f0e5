"""Whole numbers that a program looks up in a table, such as token ids: what it takes, as far as that shows unrun."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch

from audits.errors import BadInput
from audits.targets.forms import file_and_part
from audits.targets.onnx_graphs import table_sizes
from audits.targets.programs import cast, declared, script

EMBEDDING, ONE_HOT = "aten::embedding", "aten::one_hot"
"""TorchScript's operators that look their second input up in their first, and their first among a number of kinds."""
KEEP = tuple(
    f"aten::{name}"
    for name in (
        *("clone", "contiguous", "detach", "flatten", "permute", "reshape", "squeeze", "t", "transpose"),
        *("unsqueeze", "view"),
    )
)
"""Those that hand on the numbers of their first input."""
WHOLE = (3, 4)
"""TorchScript's numbers of int32 and int64."""


@dataclass(frozen=True)
class Lookup:
    """What inputs must be: of the integers ``dtype`` (None: floats will do), and in a table of ``rows`` (None: of any).

    ``from_end``: negative numbers count from the table's end.
    """

    dtype: torch.dtype | None = None
    rows: int | None = None
    from_end: bool = False

    def __bool__(self) -> bool:
        """Say whether anything is known that inputs may not be."""
        return self.dtype is not None or self.rows is not None

    def check(self, x: torch.Tensor, name: str) -> None:
        """Refuse inputs that the program called ``name`` does not take."""
        if self.dtype is not None:
            cast(x, self.dtype, name)
        if self.rows is None:
            return
        ids = x.trunc() if x.is_floating_point() else x  # as a program casts them
        wrong = ids[(ids < (-self.rows if self.from_end else 0)) | (ids >= self.rows)]
        if len(wrong):
            raise BadInput(
                f"target.weights: {name} looks its inputs up in a table of {self.rows} rows, and an input is "
                f"{wrong[0].item():g}; allowed: 0 to {self.rows - 1}; give the data that it was trained on"
            )


def lookup_in(form: str, data: bytes, name: str) -> Lookup:
    """Return what the program in ``data`` looks its inputs up in; who calls this has permission to run a TorchScript.

    Nothing of a program is run. Raises BadInput for a file that is no program.
    """
    if form == "onnx":
        dtype = declared(data, name)
        try:
            sizes = table_sizes(data, file_and_part(name)[1])
        except ValueError:
            sizes = []  # of a model in a form that onnxruntime reads and this does not
        return Lookup(None if dtype.is_floating_point else dtype, min(sizes, default=None), from_end=True)
    found = list(in_script(script(data, name)))
    direct = any(not cast_before for cast_before, _ in found)
    return Lookup(torch.int64 if direct else None, min((size for _, size in found), default=None))


def in_script(module: Any) -> Iterator[tuple[bool, int]]:
    """Yield, of each look-up of a script's own input, whether it is cast to integers first, and the table's size.

    Look-ups behind branches, loops and any arithmetic are passed over.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls scripts deprecated
        try:
            graph = torch.jit.freeze(module).graph
        except RuntimeError:  # a script that cannot be frozen shows when it is run
            return
    same = {value.debugName(): False for value in list(graph.inputs())[1:2]}
    for node in graph.nodes():
        inputs = list(node.inputs())
        names = [each.debugName() for each in inputs]
        if node.kind() == EMBEDDING and names[1] in same:
            table = inputs[0].toIValue()
            if isinstance(table, torch.Tensor):
                yield same[names[1]], len(table)
        elif node.kind() == ONE_HOT and names[0] in same:
            if (count := number(inputs[1])) is not None and count > 0:
                yield same[names[0]], count
        elif node.kind() in KEEP and names[0] in same:
            same[node.output().debugName()] = same[names[0]]
        elif node.kind() == "aten::to" and names[0] in same and len(inputs) == 5 and number(inputs[1]) in WHOLE:
            same[node.output().debugName()] = True


def number(value: Any) -> int | None:
    """Return the integer that a value of a graph is, None where it is none or only running tells."""
    found = value.toIValue()
    return found if isinstance(found, int) else None
