"""ONNX graphs give what the module gives that they were made of, whatever their batch axis; others are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from audits.errors import BadInput
from audits.queries.served.reading import Reading
from audits.targets.answering import Answering
from audits.targets.forms import form_by_name, form_of
from audits.targets.programs import answers_of, onnx, tensor_of, torchscript

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


@pytest.mark.parametrize("batch", ["N", 1, 4])
def test_a_graph_answers_as_its_module_does(batch: int | str) -> None:
    asked: list[int] = []
    run = onnx(graph(batch).SerializeToString(), "m.onnx")
    model = Answering(answers_of(run), Reading(5, "logits"), "m.onnx", asked.append)
    x = torch.rand(11, 1, 3, 4, generator=torch.Generator().manual_seed(0))
    found = model(x)
    assert found.dtype == torch.float32 and not list(model.parameters()) and asked == [11]
    assert torch.allclose(found, NET(x), atol=1e-6)


def test_what_is_no_graph_of_one_file_and_one_output_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("weights.bin").write_bytes(NET[1].weight.detach().numpy().tobytes())
    for data, says in (
        (graph(outside="weights.bin").SerializeToString(), r"keeps its weights in other files.*save it as one file"),
        (graph(outside=str(tmp_path / "weights.bin")).SerializeToString(), "keeps its weights in other files"),
        (graph(outside=f"../{tmp_path.name}/weights.bin").SerializeToString(), "keeps its weights in other files"),
        (
            graph(outputs=2).SerializeToString(),
            r"returns logits: tensor.float., more: .*m\.onnx#logits or m\.onnx#more",
        ),
        (b"no graph", "is no ONNX graph that onnxruntime reads"),
    ):
        with pytest.raises(BadInput, match=rf"target\.weights: m\.onnx {says}"):
            onnx(data, "m.onnx")
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
