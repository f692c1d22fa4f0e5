"""Tables in which a program looks its inputs up are found without running it, and wrong inputs are refused."""

from __future__ import annotations

import io
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from audits.errors import BadInput
from audits.targets.lookups import Lookup, lookup_in
from audits.targets.onnx_graphs import table_sizes
from audits.targets.programs import RUNS


class Words(nn.Module):
    """An embedding of 7 words behind what ``prepare`` does."""

    def __init__(self, prepare: str = "", **settings: Any) -> None:
        super().__init__()
        self.prepare, self.words, self.top = prepare, nn.Embedding(7, 3, **settings), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.prepare == "cast":
            x = x.long().flatten(1)
        elif self.prepare == "shifted":
            x = x.long() + 1
        found: torch.Tensor = self.top(self.words(x).sum(1))
        return found


class Branching(Words):
    """Ids that are cast only where they are floats."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.is_floating_point():
            x = x.long()
        found: torch.Tensor = self.top(self.words(x).sum(1))
        return found


class Dead(Words):
    """An embedding whose rows nobody uses."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.words(x.long())
        return x


class OneHot(nn.Module):
    """Categories of nine kinds."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.one_hot(x.long(), 9).sum(1)


def saved(net: nn.Module, *, traced: bool = False, frozen: bool = False) -> bytes:
    """Return the archive of a network."""
    net = net.eval()
    found = torch.jit.trace(net, torch.zeros(2, 2, dtype=torch.long)) if traced else torch.jit.script(net)
    file = io.BytesIO()
    torch.jit.save(torch.jit.freeze(found) if frozen else found, file)
    return file.getvalue()


DIRECT = Lookup(torch.int64, 7)
SCRIPTS: dict[str, tuple[Callable[[], bytes], Lookup]] = {
    "scripted": (lambda: saved(Words()), DIRECT),
    "traced": (lambda: saved(Words(padding_idx=0), traced=True), DIRECT),
    "frozen": (lambda: saved(Words(), frozen=True), DIRECT),
    "cast first": (lambda: saved(Words("cast", max_norm=1.0)), Lookup(None, 7)),
    "one-hot": (lambda: saved(OneHot()), Lookup(None, 9)),
    "shifted": (lambda: saved(Words("shifted")), Lookup()),
    "behind a branch": (lambda: saved(Branching()), Lookup()),
    "unused": (lambda: saved(Dead()), Lookup()),
    "without a table": (lambda: saved(nn.Linear(4, 3)), Lookup()),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("case", SCRIPTS)
def test_a_script_shows_its_tables_unrun(case: str) -> None:
    made, lookup = SCRIPTS[case]
    assert lookup_in("torchscript", made(), "m.pt") == lookup


def graph(*, taken: str = "INT64", before: tuple[tuple[str, int], ...] = (), axis: int = 0, packed: str = "") -> bytes:
    """Return an ONNX graph that looks ids up in a table of 7 × 10 along ``axis`` behind operators ``before``.

    ``packed``: where the table is kept: "constant" for a node's attribute; else among the initializers.
    """
    helper, onnx = pytest.importorskip("onnx.helper"), pytest.importorskip("onnx")
    kind = getattr(onnx.TensorProto, taken)
    table = onnx.numpy_helper.from_array(np.ones((7, 10), "f4"), "table")
    nodes, ids = [], "x"
    if packed == "constant":
        nodes.append(helper.make_node("Constant", [], ["table"], value=table))
    for place, (name, to) in enumerate(before):
        settings = {"to": to} if name == "Cast" else {}
        nodes.append(helper.make_node(name, [ids, *(["one"] if name == "Add" else [])], [f"ids{place}"], **settings))
        ids = f"ids{place}"
    nodes += [helper.make_node("Gather", ["table", ids], ["rows"], axis=axis),
              helper.make_node("ReduceSum", ["rows", "axes"], ["out"], keepdims=0),
              helper.make_node("Cast", ["x"], ["other"], to=onnx.TensorProto.FLOAT)]  # fmt: skip
    stored = [onnx.numpy_helper.from_array(np.array([1]), "axes"), onnx.numpy_helper.from_array(np.array(1), "one")]
    shown = [helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, None),
             helper.make_tensor_value_info("other", onnx.TensorProto.FLOAT, ["N", "L"])]  # fmt: skip
    made = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", kind, ["N", "L"])],
        shown,
        stored if packed else [*stored, table],
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())


@pytest.mark.parametrize(
    ("settings", "name", "lookup"),
    [
        ({}, "m.onnx#out", Lookup(torch.int64, 7, from_end=True)),
        ({"packed": "constant"}, "m.onnx#out", Lookup(torch.int64, 7, from_end=True)),
        ({"axis": -1}, "m.onnx#out", Lookup(torch.int64, 10, from_end=True)),
        ({"taken": "INT32", "before": (("Identity", 0), ("Cast", 7))}, "m.onnx#out", Lookup(torch.int32, 7, True)),
        ({"taken": "FLOAT", "before": (("Cast", 7),)}, "m.onnx#out", Lookup(None, 7, from_end=True)),
        ({"before": (("Add", 0),)}, "m.onnx#out", Lookup(torch.int64, None, from_end=True)),
        ({}, "m.onnx#other", Lookup(torch.int64, None, from_end=True)),
    ],
)
def test_a_graph_shows_its_type_and_its_tables_unrun(settings: dict[str, Any], name: str, lookup: Lookup) -> None:
    assert lookup_in("onnx", graph(**settings), name) == lookup


@pytest.mark.parametrize(
    ("form", "make", "right", "wrong"),
    [
        ("onnx", graph, [0.0, 6.0, -7.0], [[7.0], [-8.0], [0.5]]),
        ("torchscript", lambda: saved(Words()), [0.0, 6.0], [[7.0], [-1.0], [0.5]]),
        ("torchscript", lambda: saved(Words("cast")), [0.0, 6.9, -0.5], [[7.0], [-1.0]]),
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_inputs_are_refused_that_the_program_itself_refuses_when_it_is_run(
    form: str, make: Callable[[], bytes], right: list[float], wrong: list[list[float]]
) -> None:
    pytest.importorskip("onnxruntime")
    name, data = "m.onnx#out" if form == "onnx" else "m.pt", make()
    lookup, run = lookup_in(form, data, name), RUNS[form](data, name)
    for ids in right:
        x = torch.tensor([[ids, 0.0], [1.0, 2.0]])
        lookup.check(x, name)
        run(x)
    for (ids,) in wrong:
        x = torch.tensor([[1.0, 2.0], [ids, 0.0]])
        with pytest.raises(BadInput, match=rf"{name} .* an input is {ids:g}; ") as caught:
            lookup.check(x, name)
        assert "\n" not in str(caught.value)
        with pytest.raises(BadInput):
            run(x)


@pytest.mark.parametrize("data", [b"no graph", b"\x3a\xff", b"\x38\x01", b"\x3b"])
def test_what_is_no_graph_raises_one_kind_of_error(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"no protocol buffer|cut off|no ONNX model"):
        table_sizes(data, None)


def test_a_graph_that_is_cut_off_raises_the_same_kind_of_error() -> None:
    whole = graph()
    assert table_sizes(whole, None) == [7]
    for end in range(1, len(whole)):
        with suppress(ValueError):
            assert table_sizes(whole[:end], None) in ([], [7])
