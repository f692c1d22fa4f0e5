"""Programs give what the module gives that they were made of, whatever their batch axis; others are refused."""

from __future__ import annotations

import io
import math
import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from audits.errors import BadInput
from audits.queries.served.reading import Reading
from audits.targets.answering import Answering
from audits.targets.forms import form_by_name, form_of
from audits.targets.programs import RUNS, answers_of, onnx, tensor_of, torchscript
from audits.targets.trying import points_to_try
from tests.cases.families import thinned

helper = pytest.importorskip("onnx.helper")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, numpy_helper  # noqa: E402 (only where it is installed)

NET = nn.Sequential(nn.Flatten(), nn.Linear(12, 5)).eval()


def graph(batch: int | str = "N", outputs: int = 1, outside: str = "") -> Any:
    """Return the graph of NET; ``outside``: another file in which its weights stand."""
    weight, bias = NET[1].weight.detach().numpy(), NET[1].bias.detach().numpy()
    tensors = [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(bias, "b")]
    if outside:
        tensors[0].ClearField("raw_data")
        tensors[0].data_location = TensorProto.EXTERNAL
        entry = tensors[0].external_data.add()
        entry.key, entry.value = "location", outside
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w", "b"], ["logits"], transB=1),
        helper.make_node("Identity", ["logits"], ["more"]),
    ]
    shown = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, 5]) for name in ("logits", "more")]
    taken = helper.make_tensor_value_info("x", TensorProto.FLOAT, [batch, 1, 3, 4])
    made = helper.make_graph(nodes, "net", [taken], shown[:outputs], tensors)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize("batch", thinned(("N", 1, 4), ("N", 4)))
def test_a_graph_answers_as_its_module_does(batch: int | str) -> None:
    asked: list[int] = []
    run = onnx(graph(batch).SerializeToString(), "m.onnx")
    model = Answering(answers_of(run), Reading(5, "logits"), "m.onnx", asked.append)
    x = torch.rand(11, 1, 3, 4, generator=torch.Generator().manual_seed(0))
    found = model(x)
    assert found.dtype == torch.float32 and not list(model.parameters()) and asked == [11]
    assert torch.allclose(found, NET(x), atol=1e-6)


NO_GRAPHS: dict[str, tuple[Callable[[], bytes], str]] = {
    "weights in another file": (lambda: graph(outside="weights.bin").SerializeToString(),
                                r"keeps its weights in other files.*save it as one file"),
    "weights in a file at large": (lambda: graph(outside=os.path.abspath("weights.bin")).SerializeToString(),
                                   "keeps its weights in other files"),
    "weights in a file above": (lambda: graph(outside=f"../{Path.cwd().name}/weights.bin").SerializeToString(),
                                "keeps its weights in other files"),
    "two outputs": (lambda: graph(outputs=2).SerializeToString(),
                    r"returns logits: tensor.float., more: .*m\.onnx#logits or m\.onnx#more"),
    "no graph": (lambda: b"no graph", "is no ONNX graph that onnxruntime reads"),
    "texts": (lambda: typed(TensorProto.FLOAT, TensorProto.STRING),
              r"returns out: tensor.string.*none is a tensor of numbers"),
}  # fmt: skip


@pytest.mark.parametrize("what", thinned(NO_GRAPHS, ("weights in a file above", "two outputs", "no graph")))
def test_what_is_no_graph_of_one_file_and_one_output_is_refused(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("weights.bin").write_bytes(NET[1].weight.detach().numpy().tobytes())
    make, says = NO_GRAPHS[what]
    with pytest.raises(BadInput, match=rf"target\.weights: m\.onnx {says}"):
        onnx(make(), "m.onnx")


def test_inputs_and_outputs_of_other_shapes_are_refused() -> None:
    model = Answering(answers_of(onnx(graph().SerializeToString(), "m.onnx")), Reading(5, "logits"), "m.onnx")
    with pytest.raises(BadInput, match=r"does not take inputs of shape \(1, 5, 5\)"):
        model(torch.zeros(2, 1, 5, 5))
    with pytest.raises(BadInput, match="5 scores for an input; there are 7 classes"):
        Answering(model.ask, Reading(7, "logits"), "m.onnx")(torch.zeros(2, 1, 3, 4))


def test_one_of_several_outputs_is_named_behind_the_file() -> None:
    data = graph(outputs=2).SerializeToString()
    x = torch.rand(3, 1, 3, 4, generator=torch.Generator().manual_seed(0))
    for name in ("m.onnx#logits", "m.onnx#more"):
        assert form_by_name(name) == "onnx"
        assert torch.allclose(onnx(data, name)(x), NET(x), atol=1e-6)
    with pytest.raises(BadInput, match=r"m\.onnx#loss returns logits"):
        onnx(data, "m.onnx#loss")


class Two(nn.Module):
    """Features, and logits."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x.flatten(1), x.flatten(1) * 2


def test_one_of_several_values_of_a_script_is_named_behind_the_file(tmp_path: Path) -> None:
    torch.jit.script(Two()).save(str(tmp_path / "m.pt"))
    data, x = (tmp_path / "m.pt").read_bytes(), torch.rand(3, 2, 2)
    assert form_of(f"{tmp_path / 'm.pt'}#1") == "torchscript"
    assert torch.equal(torchscript(data, "m.pt#1")(x), x.flatten(1) * 2)
    for name in ("m.pt", "m.pt#2", "m.pt#logits"):
        with pytest.raises(BadInput, match=r"returns 2 values \(0, 1\).*m\.pt#0"):
            torchscript(data, name)(x)
    assert torch.equal(tensor_of({"loss": None, "logits": x}, "m.pt#logits"), x)


def typed(taken: int, given: int, rows: int = 7) -> bytes:
    """Return a graph that takes ``taken`` and returns ``given``: each input picks a row of a table, or is added to."""
    tensors = [numpy_helper.from_array(torch.arange(rows * 3.0).reshape(rows, 3).numpy(), "table")]
    whole = taken in (TensorProto.INT64, TensorProto.INT32)
    nodes = [
        helper.make_node("Gather", ["table", "x"], ["rows"])
        if whole
        else helper.make_node("Cast", ["x"], ["rows"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["rows", "axes"], ["sum"], keepdims=0),
        helper.make_node("Cast", ["sum"], ["out"], to=given)
        if given != TensorProto.INT64
        else helper.make_node("ArgMax", ["sum"], ["out"], axis=1, keepdims=0),
    ]
    tensors.append(numpy_helper.from_array(torch.tensor([1]).numpy(), "axes"))
    shapes: tuple[list[Any], list[Any]] = (
        ["N", 2] if whole else ["N", 2, 3],
        ["N"] + [3] * (given != TensorProto.INT64),
    )
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", taken, shapes[0])],
        [helper.make_tensor_value_info("out", given, shapes[1])],
        tensors,
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(made.SerializeToString())


TYPES = [(taken, given) for taken in ("FLOAT", "DOUBLE", "FLOAT16", "INT64", "INT32")
         for given in ("FLOAT", "DOUBLE", "FLOAT16", "INT64")]  # fmt: skip


@pytest.mark.parametrize(
    ("taken", "given"),
    thinned(TYPES, [("FLOAT", "FLOAT16"), ("INT64", "FLOAT")]),
)
def test_a_graph_is_given_its_inputs_in_the_type_that_it_declares(taken: str, given: str) -> None:
    data = typed(getattr(TensorProto, taken), getattr(TensorProto, given))
    whole = taken.startswith("INT")
    x = torch.tensor([[1.0, 2.0], [6.0, 0.0]]) if whole else torch.tensor([0.5, 1, 2]).expand(4, 2, 3)
    sums = torch.arange(21.0).reshape(7, 3)[x.long()].sum(1) if whole else x.sum(1)
    reading = Reading(3, "labels" if given == "INT64" else "logits")
    found = Answering(answers_of(onnx(data, "m.onnx")), reading, "m.onnx")(x)
    assert torch.equal(found.argmax(1), sums.argmax(1))
    assert given == "INT64" or torch.equal(found, sums)


@pytest.mark.parametrize("wrong", thinned([0.5, 2.0**40, float("nan")], [0.5]))
def test_a_program_of_whole_numbers_refuses_others_in_one_line(wrong: float, tmp_path: Path) -> None:
    x = torch.tensor([[1.0, 2.0], [3.0, wrong]])
    runs = [onnx(typed(TensorProto.INT32, TensorProto.FLOAT), "m.onnx")]
    if wrong != 2.0**40:  # int64 has it
        torch.jit.script(nn.Sequential(nn.Embedding(7, 3), nn.Flatten())).save(str(tmp_path / "m.pt"))
        runs.append(torchscript((tmp_path / "m.pt").read_bytes(), "m.pt"))
    for run in runs:
        with pytest.raises(BadInput, match=r"m\.\w+ takes whole numbers \(int\d\d\), and an input is") as caught:
            run(x)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_a_script_is_given_its_inputs_in_the_type_that_it_takes(dtype: torch.dtype, tmp_path: Path) -> None:
    body, x = nn.Linear(4, 3).to(dtype), torch.rand(5, 4)
    torch.jit.script(body).save(str(tmp_path / "m.pt"))
    run = torchscript((tmp_path / "m.pt").read_bytes(), "m.pt")
    assert answers_of(run)(x) == body(x.to(dtype)).tolist()
    with pytest.raises(BadInput, match=r"does not take inputs of shape \(9,\)"):
        run(torch.rand(5, 9))


def test_a_script_with_an_embedding_is_given_whole_numbers(tmp_path: Path) -> None:
    body, x = nn.Sequential(nn.Embedding(7, 3), nn.Flatten(), nn.Linear(6, 2)), torch.tensor([[1.0, 2.0], [6.0, 0.0]])
    torch.jit.script(body).save(str(tmp_path / "m.pt"))
    run = torchscript((tmp_path / "m.pt").read_bytes(), "m.pt")
    for _ in range(2):
        assert answers_of(run)(x) == body(x.long()).tolist()
    with pytest.raises(BadInput, match="index out of range"):
        run(x + 5)


class Words(nn.Module):
    """An embedding of 7 words; ``cast``: of numbers that it makes whole itself."""

    def __init__(self, cast: bool = False) -> None:
        super().__init__()
        self.cast, self.words, self.top = cast, nn.Embedding(7, 3), nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.cast:
            x = x.long().flatten(1)
        found: torch.Tensor = self.top(self.words(x).sum(1))
        return found


class Branching(Words):
    """Ids that are cast only where they are floats."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.is_floating_point():
            x = x.long()
        found: torch.Tensor = self.top(self.words(x.flatten(1)).sum(1))
        return found


class OneHot(nn.Module):
    """Categories of nine kinds."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.one_hot(x.long(), 9).sum(1).float()


def net(inputs: int, outputs: int) -> nn.Module:
    """Return a network of one layer."""
    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, outputs))


def saved(module: nn.Module) -> bytes:
    """Return the archive of a module."""
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(module.eval()), file)
    return file.getvalue()


def words(*, taken: str = "INT64", cast: bool = False, outputs: int = 2) -> bytes:
    """Return an ONNX graph that looks ids up in a table of 7 rows; beside ``out`` it returns what it was given."""
    nodes = [helper.make_node("Cast", ["x"], ["ids"], to=TensorProto.INT64 if cast else getattr(TensorProto, taken)),
             helper.make_node("Gather", ["table", "ids"], ["rows"]),
             helper.make_node("ReduceSum", ["rows", "axes"], ["out"], keepdims=0),
             helper.make_node("Cast", ["x"], ["other"], to=TensorProto.FLOAT)]  # fmt: skip
    stored = [numpy_helper.from_array(torch.ones(7, 10).numpy(), "table"),
              numpy_helper.from_array(torch.tensor([1]).numpy(), "axes")]  # fmt: skip
    shown = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("out", "other")]
    given = helper.make_tensor_value_info("x", getattr(TensorProto, taken), None)
    made = helper.make_graph(nodes, "net", [given], shown[:outputs], stored)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())


def of_images(shape: tuple[int, ...], outputs: int) -> bytes:
    """Return an ONNX graph of one layer that says which shape its inputs have."""
    inputs = math.prod(shape)
    nodes = [helper.make_node("Flatten", ["x"], ["flat"]), helper.make_node("MatMul", ["flat", "w"], ["logits"])]
    weight = numpy_helper.from_array(torch.ones(inputs, outputs).numpy(), "w")
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *shape])
    shown = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", outputs])
    made = helper.make_graph(nodes, "net", [given], [shown], [weight])
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(model.SerializeToString())


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("form", "make", "right", "wrong"),
    [
        ("onnx", words, [0.0, 6.0, -7.0], [7.0, -8.0, 0.5]),
        pytest.param(
            "onnx", lambda: words(taken="FLOAT", cast=True), [0.0, 6.9, -7.0], [7.0, -8.0], marks=pytest.mark.long
        ),
        ("torchscript", lambda: saved(Words()), [0.0, 6.0], [7.0, -1.0, 0.5]),
        ("torchscript", lambda: saved(Words(cast=True)), [0.0, 6.9, -0.5], [7.0, -1.0]),
        ("torchscript", lambda: saved(Branching()), [0.0, 6.9, -0.5], [7.0, -1.0]),
        ("torchscript", lambda: saved(OneHot()), [0.0, 8.9, -0.5], [9.0, -1.0]),
    ],
)
def test_one_wrong_number_among_many_is_found_by_trying_few_points(
    form: str, make: Callable[[], bytes], right: list[float], wrong: list[float]
) -> None:
    run = RUNS[form](make(), "m.onnx#out" if form == "onnx" else "m.pt")
    inputs = np.resize(np.array([1, 2, 3], "f4"), (9000, 2))
    for number, refused in [*((each, False) for each in right), *((each, True) for each in wrong)]:
        inputs[8765, 1] = number
        tried = points_to_try(inputs, np.arange(len(inputs)))
        assert len(tried) <= 5
        with pytest.raises(BadInput) if refused else nullcontext():
            run(torch.from_numpy(inputs[tried]))
        run(torch.from_numpy(inputs[points_to_try(inputs, np.delete(np.arange(len(inputs)), 8765))]))


def test_images_are_tried_without_being_looked_through() -> None:
    assert points_to_try(np.zeros((9, 1, 2, 2), np.uint8), np.array([3, 5, 7])).tolist() == [3, 5]
