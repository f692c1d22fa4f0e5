"""The Python of docs/how-to/served-models.md runs as it stands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.server import HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from torch import nn

from audits.models.base import make_model
from audits.queries.oracles import label_oracle, logit_oracle, posterior_oracle
from audits.queries.served.endpoint import mlflow_endpoint
from audits.queries.served.oracles import HttpLabels, HttpPosteriors
from audits.queries.served.patience import Pace
from audits.queries.served.reading import Reading
from audits.targets.weights import read_weights, with_weights
from orchestrator.cli.main import main
from orchestrator.kinds import check_against_data, load_plan, plan_from
from tests.cases.endpoint import serving
from tests.cases.kept import finished
from tests.cases.ports import free_ports
from tests.cases.runs import UnshownRun, draw_only
from tests.docs.commands import BLOCK, ROOT, in_blocks, python_blocks

PAGE = ROOT / "docs" / "how-to" / "served-models.md"
MEMBERS, AT_MLFLOW, SERVER, AT_SERVER = (block for path, block in python_blocks() if path.name == "served-models.md")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(block: str, old: str = "", new: str = "") -> dict[str, Any]:
    """Run a piece of the page, with another address in the place of its own."""
    assert old in block
    scope: dict[str, Any] = {"__name__": "page"}
    exec(block.replace(old, new) if old else block, scope)
    return scope


def classifier() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Flatten(), nn.Linear(196, 16), nn.ReLU(), nn.Linear(16, 10)).eval()


def check_the_first_page(url: str, net: nn.Module, capsys: pytest.CaptureFixture[str]) -> None:
    """Run the MLflow page against ``url`` and compare what it finds with ``net``."""
    scope = run(AT_MLFLOW, "http://127.0.0.1:5000", url)
    x, ids = scope["images"], scope["ids"]
    assert torch.equal(scope["labels"], label_oracle(net).ask(x[:, None], ids))
    assert torch.equal(scope["log_probabilities"], posterior_oracle(net).ask(x, ids))
    assert torch.equal(scope["again"], scope["labels"])
    assert capsys.readouterr().out.splitlines()[0] in AT_MLFLOW  # the tally


def test_the_plans_of_the_page_are_valid(tmp_path: Path) -> None:
    """Both are checked without a server; ``tests/long/test_served_target.py`` carries such plans out."""
    whole, section, again = (
        yaml.safe_load(block) for language, block in BLOCK.findall(PAGE.read_text()) if language == "yaml"
    )
    check_against_data(plan_from(whole))
    Path("members.txt").write_text("\n".join(map(str, range(1000))))
    asked = {"gives": "logits", "answers": "$.predictions.logits"}
    again["target"] = {"weights": "http://127.0.0.1:5001/invocations", "members": "members.txt", "served": asked}
    check_against_data(plan_from(again))
    whole["audit"]["attacks"] = ["label_gap", "boundary_distance"]  # what labels allow
    check_against_data(plan_from(whole | section))


def test_the_page_on_mlflow_says_what_happens(capsys: pytest.CaptureFixture[str]) -> None:
    net = classifier()
    with serving(net) as server:
        check_the_first_page(server.url, net, capsys)


def test_the_endpoint_of_the_page_is_asked_as_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    scope = run(SERVER)
    server = HTTPServer(("127.0.0.1", 0), scope["Endpoint"])
    scope["Endpoint"].log_message = lambda *_: None
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        found = run(AT_SERVER, "http://127.0.0.1:8080", f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    x, ids = found["images"], found["ids"]
    wanted = label_oracle(scope["model"]).ask(x[:, None], ids)
    assert torch.equal(found["served"].oracle().ask(x[:, None], ids), wanted)  # from the record
    assert capsys.readouterr().out.strip() == str(wanted)


@contextmanager
def mlflow_server(model: Path, port: int) -> Iterator[None]:
    """Serve a logged model by MLflow's own scoring server; it may take its time to answer."""
    command = [str(Path(sys.executable).parent / "mlflow"), "models", "serve", "-m", str(model), "-p", str(port)]
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with Path("serve.log").open("w") as log:
        server = subprocess.Popen(
            [*command, "--env-manager", "local", "--host", "127.0.0.1", "--workers", "1"],
            stdout=log,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        try:
            yield
        finally:
            server.terminate()
            server.wait()


@pytest.mark.needs("bash")  # MLflow starts its server by it
@pytest.mark.long
def test_mlflows_own_server_answers_as_the_model_does(capsys: pytest.CaptureFixture[str], unused_port: int) -> None:
    import mlflow

    net, x = classifier(), torch.rand(30, 1, 14, 14, generator=torch.Generator().manual_seed(0))
    ids = torch.arange(30).numpy()
    signature = mlflow.models.infer_signature(x.numpy(), net(x).detach().numpy())
    mlflow.pytorch.save_model(net, "model", signature=signature, serialization_format="pickle")
    url, reading, patient = f"http://127.0.0.1:{unused_port}", Reading(10, "logits"), Pace(patience=300)
    with mlflow_server(Path("model"), unused_port):
        for form in ("inputs", "instances"):
            served = HttpPosteriors(mlflow_endpoint(url, form), reading, patient)
            assert torch.equal(served.logit_oracle().ask(x, ids), logit_oracle(net).ask(x, ids))
            assert served.tally.served == 30
        check_the_first_page(url, net, capsys)
    flat = nn.Sequential(net[1], net[2], net[3])
    mlflow.pytorch.save_model(flat, "flat", serialization_format="pickle")
    with mlflow_server(Path("flat"), unused_port):
        endpoint = mlflow_endpoint(url, "dataframe_split")
        found = HttpLabels(endpoint, reading, patient).oracle().ask(x[:, None], ids)
    assert torch.equal(found, label_oracle(net).ask(x[:, None], ids))


SMALL = {
    "trained": ["audit.attacks=[loss]", "split.shadows=4", "split.strangers=2", "split.null_models=2"],
    "by-weights": ["split.shadows=6", "recipe.epochs=2"],
}
"""Changes of the page's audits that let them take less."""


@contextmanager
def loaded_here(model: Path) -> Iterator[str]:
    """Serve a logged model as MLflow loads it, in this process; yield the address of the server."""
    import mlflow.pyfunc

    predict = mlflow.pyfunc.load_model(str(model)).predict

    def named(found: Any) -> dict[str, Any]:
        return {name: np.asarray(part).tolist() for name, part in found.items()}

    with serving(lambda x: predict(x.numpy()), named) as server:
        yield server.url


@contextmanager
def by_mlflow(model: Path) -> Iterator[str]:
    """Serve a logged model by MLflow's own server; yield its address."""
    (port,) = free_ports(1)
    with mlflow_server(model, port):
        yield f"http://127.0.0.1:{port}/invocations"


def test_the_members_of_a_trained_run_are_written_down() -> None:
    Path("trained").symlink_to(finished("mia"))
    run(MEMBERS)
    found, plan = Path("members.txt").read_text().split(), load_plan("trained/plan.yaml").resolved()
    assert len({*found}) == len(found) == plan["split"]["train_size"]


@pytest.mark.long
@pytest.mark.parametrize(
    "server",
    [loaded_here, pytest.param(by_mlflow, marks=pytest.mark.needs("bash"))],  # MLflow starts it so
)
@pytest.mark.timeout(1800)
def test_a_model_that_orch_trained_is_served_and_audited_as_its_weights_are(
    server: Callable[[Path], AbstractContextManager[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The section's commands, in its order: train, serve, write members down, audit twice, compare."""
    commands = {words[words.index("--out") + 1]: words for words in of_the_page() if "--out" in words}
    assert [*commands] == ["trained", "by-weights", "by-server"]
    quick = ["--store", "store", "--workers", "0", "--quiet"]
    less = {name: [word for change in changes for word in ("--set", change)] for name, changes in SMALL.items()}
    if server is by_mlflow:  # as the page has it
        less = {name: [] for name in SMALL}
    else:
        draw_only(monkeypatch, "none")
    assert main([*commands["trained"][1:], *quick, *less["trained"]]) == 0
    if server is not by_mlflow:  # pages and tracking of given models have tests of their own
        monkeypatch.setattr("orchestrator.engine.run.run.Run", UnshownRun)
    run(MEMBERS)
    Path("served.yaml").write_text(
        next(block for _, block in BLOCK.findall(PAGE.read_text()) if "[lira_offline" in block)
    )
    (model,) = Path("trained/mlartifacts/models").glob("m-*/artifacts")
    weights = [word.replace("trained/mlartifacts/models/m-*/artifacts", str(model)) for word in commands["by-weights"]]
    assert main([*weights[1:], *quick, *less["by-weights"]]) == 0
    x = torch.tensor(json.loads((model / "serving_input_example.json").read_text())["inputs"])
    net = make_model("mlp", {"hidden": [32]}).build((1, 8, 8), 10, 0)
    net = with_weights(net, read_weights(str(model / "artifacts" / "weights.safetensors"), net).state)
    with server(model) as url:
        served = [word.replace("http://127.0.0.1:5001/invocations", url) for word in commands["by-server"]]
        assert served != [*commands["by-server"]]
        endpoint = mlflow_endpoint(url.removesuffix("/invocations"), answers="$.predictions.logits")
        oracle = HttpPosteriors(endpoint, Reading(10, "logits"), Pace(patience=300))
        ids = torch.arange(1).numpy()
        assert torch.equal(oracle.logit_oracle().ask(x, ids), logit_oracle(net).ask(x, ids))
        assert main([*served[1:], *quick, *less["by-weights"]]) == 0
    assert Path("by-server/scores.parquet").read_bytes() == Path("by-weights/scores.parquet").read_bytes()
    rows = [json.loads(Path(name, "result.json").read_text())["table"] for name in ("by-server", "by-weights")]
    assert rows[0] == rows[1] and len(rows[0]) == 4


def of_the_page() -> list[tuple[str, ...]]:
    """Return the commands of orch in blocks of the page, in their order."""
    return [command.words for command in in_blocks(PAGE) if command.words[0] == "orch"]


@pytest.fixture
def unused_port() -> int:
    return free_ports(1)[0]
