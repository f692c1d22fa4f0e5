"""A graph that never ends, or takes all memory, is refused; no process of one is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from audits.errors import BadInput
from audits.targets import onnx_apart
from audits.targets.onnx_apart import GraphFailed, Session
from audits.targets.programs import onnx
from tests.cases.planted import plant, run
from tests.cases.waiting import wait_for

pytest.importorskip("onnxruntime")
ROOT = Path(__file__).resolve().parents[3]


def model(nodes: list[Any], tables: list[Any]) -> bytes:
    """Return a graph from x, floats of shape (n, 2), to y."""
    from onnx import TensorProto, helper

    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in (("x", ["n", 2]), ("y", None))
    )
    graph = helper.make_graph(nodes, "g", [x], [y], initializer=tables)
    made: bytes = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8
    ).SerializeToString()
    return made


def endless() -> bytes:
    """Return a graph that loops for ever: 2⁶³ − 1 rounds, and its condition stays true."""
    from onnx import TensorProto, helper

    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["going"], ["goes_on"]),
            helper.make_node("Mul", ["state", "state"], ["next"]),
        ],
        "body",
        [info("i", TensorProto.INT64, []), info("going", TensorProto.BOOL, []), info("state", TensorProto.FLOAT, None)],
        [info("goes_on", TensorProto.BOOL, []), info("next", TensorProto.FLOAT, None)],
    )
    tables = [
        helper.make_tensor("rounds", TensorProto.INT64, [], [2**63 - 1]),
        helper.make_tensor("true", TensorProto.BOOL, [], [True]),
    ]
    return model([helper.make_node("Loop", ["rounds", "true", "x"], ["y"], body=body)], tables)


def huge() -> bytes:
    """Return a graph whose answer takes 8 TiB."""
    from onnx import TensorProto, helper

    shape = helper.make_tensor("shape", TensorProto.INT64, [3], [2**40, 1, 2])
    return model([helper.make_node("Expand", ["x", "shape"], ["y"])], [shape])


X = torch.ones(3, 2)


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt in the midst of what runs, as Ctrl-C does."""
    before = signal.signal(signal.SIGALRM, lambda *_: signal.default_int_handler(signal.SIGINT, None))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_graph_that_never_ends_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = onnx(endless(), "model.onnx")
    monkeypatch.setattr(onnx_apart, "MOST_SECONDS", 0.2)
    monkeypatch.setattr(onnx_apart, "MOST_SECONDS_EACH", 0.1)
    with pytest.raises(BadInput, match=r"model\.onnx .*no answer within") as error:
        ask(X)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.long
def test_ctrl_c_ends_a_graph_that_never_ends() -> None:
    session = Session(endless())
    with interrupted_after(0.2), pytest.raises(KeyboardInterrupt):
        session.run(["y"], {"x": X.numpy()})
    assert session._process.poll() == -signal.SIGKILL


def test_a_graph_that_takes_all_memory_is_refused() -> None:
    ask = onnx(huge(), "model.onnx")
    with pytest.raises(BadInput, match="does not take inputs of shape"):
        ask(X)


def test_no_process_outlives_a_session() -> None:
    session = Session(endless())
    process = session._process
    del session
    assert process.poll() is not None


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_process_of_a_graph_is_told_no_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "marked-secret")
    session = Session(endless())
    environment = Path(f"/proc/{session._process.pid}/environ").read_bytes()
    assert b"PATH=" in environment and b"marked-secret" not in environment


def test_no_process_outlives_a_run_that_is_killed(tmp_path: Path) -> None:
    (tmp_path / "endless.onnx").write_bytes(endless())
    script = """
import pathlib, sys, numpy as np
from audits.targets.onnx_apart import Session
session = Session(pathlib.Path(sys.argv[1]).read_bytes())
print(session._process.pid, flush=True)
session.run(["y"], {"x": np.ones((1, 2), np.float32)})
"""
    words = [sys.executable, "-c", script, str(tmp_path / "endless.onnx")]
    driver = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert driver.stdout is not None
    child = int(driver.stdout.readline())
    assert Path(f"/proc/{child}").exists()
    driver.kill()
    driver.wait()
    driver.stdout.close()
    wait_for(lambda: not runs(child))


def runs(process: int) -> bool:
    """Say whether a process is there and no zombie."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_graph_runs_without_the_modules_of_the_working_folder(tmp_path: Path) -> None:
    imported = plant(tmp_path / "theirs", "json", "numpy", "onnxruntime")
    (tmp_path / "endless.onnx").write_bytes(endless())
    script = """
import pathlib, sys
from audits.own.import_path import leave_out_working_folder
leave_out_working_folder()
from audits.targets.onnx_apart import Session
print(Session(pathlib.Path(sys.argv[1]).read_bytes()).get_inputs()[0].name)
"""
    file = tmp_path / "script.py"
    file.write_text(script)
    done = run([sys.executable, str(file), str(tmp_path / "endless.onnx")], tmp_path / "theirs", f"{ROOT}:")
    assert done.stdout == "x\n" and not imported.exists(), done.stderr


def test_a_graph_that_ends_its_process_is_one_line() -> None:
    session = Session(endless())
    session._process.kill()
    with pytest.raises(GraphFailed, match="signal 9"):
        session.run(["y"], {"x": np.ones((1, 2), np.float32)})
