"""A given program is started once to be read and once to be tried, however many settings share it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from audits.errors import BadInput
from audits.models import make_model
from audits.own.permission import asking
from audits.targets import onnx_apart
from orchestrator.cli.main import main
from orchestrator.engine.data import data_of
from orchestrator.engine.given_files import with_digests
from orchestrator.engine.run import passed
from orchestrator.engine.run.answered import check_asked
from orchestrator.kinds import KINDS, open_design, plan_from
from tests.cases.refusals import without_work
from tests.orchestrator.given.test_planted_models import script

helper = pytest.importorskip("onnx.helper")
pytest.importorskip("onnxruntime")
from onnx import TensorProto, numpy_helper  # noqa: E402 (only where it is installed)

MODEL = {"name": "mlp", "settings": {"hidden": [8]}}
PLAN = """
audit: {kind: mia, fpr: [0.2], attacks: [loss]}
data: {name: digits}
split: {train_size: 60, shadows: 0, test: 100}
target: {weights: model.onnx, members: "0:80"}
compute: {workers: 0, store: store}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "toy", "tests.cases.given_kind:KIND")
    monkeypatch.setattr(passed, "_PASSED", set())
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the graphs for which a process was started."""
    found: list[int] = []
    plain = onnx_apart.Session.__init__

    def counted(session: onnx_apart.Session, data: bytes) -> None:
        found.append(len(data))
        plain(session, data)

    monkeypatch.setattr(onnx_apart.Session, "__init__", counted)
    return found


def classifier(classes: int) -> bytes:
    """Return a linear graph on the digits."""
    weights = np.random.default_rng(0).normal(size=(classes, 64)).astype(np.float32)
    nodes = [
        helper.make_node("Flatten", ["x"], ["flat"]),
        helper.make_node("Gemm", ["flat", "w"], ["logits"], transB=1),
    ]
    taken = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 1, 8, 8])
    given = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", classes])
    graph = helper.make_graph(nodes, "net", [taken], [given], [numpy_helper.from_array(weights, "w")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(made.SerializeToString())


def check(weights: str, members: str, **more: Any) -> None:
    """Look at a target on digits, as commands do before any work."""
    target = {"weights": weights, "members": members, "non_members": "60:120", **more}
    plan = plan_from({"audit": {"kind": "toy"}, "data": {"name": "digits"}, "model": MODEL, "target": target})
    check_asked(open_design(with_digests(plan), data=data_of("digits", None), device="cpu"))


@pytest.mark.long
def test_settings_of_a_sweep_share_what_has_passed(started: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    Path("model.onnx").write_bytes(classifier(10))
    Path("plan.yaml").write_text(PLAN)
    assert main(["validate", "plan.yaml"]) == 0
    assert len(started) == 2
    without_work(monkeypatch)
    main(["sweep", "--vary", "split.test=100,120,140", "plan.yaml", "--out", "o"])
    assert len(started) == 3, "the model is brought in"


def test_other_points_another_program_and_another_reading_are_tried(started: list[int]) -> None:
    for classes, file in ((10, "a.onnx"), (9, "b.onnx")):
        Path(file).write_bytes(classifier(classes))
    check("a.onnx", "0:60")
    check("a.onnx", "0:60")
    assert len(started) == 1
    check("a.onnx", "5:60")
    assert len(started) == 2
    with pytest.raises(BadInput, match="9"):
        check("b.onnx", "0:60")
    with pytest.raises(BadInput, match="the probability"):
        check("a.onnx", "0:60", served={"gives": "probabilities"})


def test_what_was_refused_is_refused_again(started: list[int]) -> None:
    Path("b.onnx").write_bytes(classifier(9))
    for count in (1, 2):
        with pytest.raises(BadInput, match="9"):
            check("b.onnx", "0:60")
        assert len(started) == count


def test_permission_is_asked_for_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    net: nn.Module = make_model("mlp", {"hidden": [8]}).build((1, 8, 8), 10, 3).eval()
    script(net, "model.ts")
    loads: list[object] = []
    plain = torch.jit.load
    monkeypatch.setattr(torch.jit, "load", lambda *each, **more: (loads.append(each), plain(*each, **more))[1])
    for _ in range(2):
        check("model.ts", "0:60")
    assert len(loads) == 1
    with asking(lambda _: False), pytest.raises(BadInput, match="--allow-code"):
        check("model.ts", "0:60")
