"""Audits of a model behind HTTP equal those of its weights bit for bit, whatever happens to the server meanwhile.

The server is a JSON endpoint of twenty lines, a process of its own that is killed and started again, and MLflow's.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from pandas.testing import assert_frame_equal
from torch import nn

from audits.data.catalogue import load
from orchestrator.cli.main import main
from tests.cases.ports import free_ports
from tests.docs.test_served_models import mlflow_server

pytestmark = [pytest.mark.long, pytest.mark.slow]

ENDPOINT = """
import json, os, sys
from http.server import BaseHTTPRequestHandler, HTTPServer
import torch
from torch import nn
torch.set_num_threads(1)
port, fault, after = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
model = nn.Sequential(nn.Flatten(), nn.Linear(196, 64), nn.ReLU(), nn.Linear(64, 10)).eval()
model.load_state_dict(torch.load("weights.pt"))
requests = 0
class Endpoint(BaseHTTPRequestHandler):
    def do_POST(self):
        global requests
        requests += 1
        images = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["images"]
        bad = fault if requests == after else ""
        if bad == "die":
            os._exit(1)
        with torch.no_grad():
            outputs = model(torch.tensor(images)).tolist()
        reply = {"results": [{"scores": each} for each in outputs]}
        if bad == "nan":
            reply["results"][0]["scores"][0] = float("nan")
        if bad == "names":
            reply = {"results": [{"scores": {"a": 1.0}} for each in outputs]}
        body = b"<html>" if bad == "garbage" else json.dumps(reply).encode()
        self.send_response(int(bad) if bad.isdecimal() else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if not bad:
            with open("served.log", "a") as log:
                log.write(f"{len(images)}\\n")
    def log_message(self, *_):
        pass
HTTPServer(("127.0.0.1", port), Endpoint).serve_forever()
"""
MEMBERS = np.sort(np.random.default_rng(0).permutation(70000)[:200])
FORGET = MEMBERS[::4]
COMMON: dict[str, Any] = {
    "data": {"name": "fashion14"},
    "model": {"name": "mlp", "settings": {"hidden": [64]}},
    "compute": {"workers": 0},
}
PLANS: dict[str, dict[str, Any]] = {
    "mia": {
        "audit": {
            "kind": "mia", "fpr": [0.2], "hop_skip_jump": {"points": 100}, "bootstrap": 40, "permutations": 40,
            "attacks": ["lira_offline", "rmia", "loss", "label_gap", "boundary_distance"],
        },
        "split": {"train_size": 150, "shadows": 6, "test": 100},
        "recipe": {"learning_rate": 0.004, "epochs": 10, "batch_size": 40},
        "target": {"members": "members.txt"},
    },
    "apollo": {
        "audit": {
            "kind": "apollo", "attacks": ["apollo", "single_query", "u_lira"], "fpr": [0.2], "search": {"steps": 2},
            "bootstrap": 20, "permutations": 400,
        },
        "split": {"train_size": 200, "shadow_pool": 1600, "test_pool": 250, "shadows": 8, "offline_shadows": 2},
        "recipe": {"learning_rate": 0.004, "epochs": 10, "batch_size": 40},
        "unlearning": [{"method": "finetune", "learning_rate": 0.004, "epochs": 2}],
        "target": {"members": "members.txt", "forget": "forget.txt"},
    },
    "tmia": {
        "audit": {
            "kind": "tmia", "beta": 0.2, "asked": 16, "selectors": ["none"], "reference_samples": 200, "bootstrap": 40,
            "attacks": ["tmia", "tmia_distance", "tmia_posterior", "rmia", "label_gap", "noise_votes"],
            "noise": {"copies": 8}, "reconstruction": {"points": 10, "models": 4},
        },
        "split": {
            "reference_models": 12, "null_models": 4, "candidates": 100, "train_size": 150, "attacker_points": 600,
        },
        "recipe": {"learning_rate": 0.004, "epochs": 10, "batch_size": 40},
        "target": {"members": "members.txt"},
    },
}  # fmt: skip
ASKED = {"gives": "logits", "template": {"images": "{inputs}"}, "answers": "$.results[*].scores", "identity": "mine"}


def train(net: nn.Module, ids: np.ndarray, epochs: int) -> None:
    x, y = load("fashion14").tensors(ids).all()
    optimiser = torch.optim.AdamW(net.parameters(), 4e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(y)).split(40):
            optimiser.zero_grad()
            nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
            optimiser.step()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an unlearned model of fashion14, made by a loop that knows nothing of orch."""
    place = tmp_path_factory.mktemp("served")
    torch.manual_seed(5)
    net = nn.Sequential(nn.Flatten(), nn.Linear(196, 64), nn.ReLU(), nn.Linear(64, 10))
    train(net, MEMBERS, 25)
    train(net, np.setdiff1d(MEMBERS, FORGET), 2)
    torch.save(net.state_dict(), place / "weights.pt")
    np.savetxt(place / "members.txt", MEMBERS, fmt="%d")
    np.savetxt(place / "forget.txt", FORGET, fmt="%d")
    (place / "endpoint.py").write_text(ENDPOINT)
    return place


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


@pytest.fixture(autouse=True)
def _there(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)


def audit(kind: str, name: str, weights: str, served: dict[str, Any] | None = None) -> int:
    """Return the exit code of an audit by the command line; models come from one store, answers do not."""
    target = PLANS[kind]["target"] | {"weights": weights} | ({"served": served} if served else {})
    Path("plan.yaml").write_text(json.dumps(COMMON | PLANS[kind] | {"target": target}))
    here = ["--store", "store", "--set", f"tracking.uri=sqlite:///{Path.cwd()}/mlflow.db"]
    allowed = ["--allow-addresses", weights] if weights.startswith("http") else []
    return main(["audit", kind, "plan.yaml", "--out", name, "--force", *here, *allowed])


def scores(name: str) -> bytes:
    return Path(name, "scores.parquet").read_bytes()


_references: dict[str, bytes] = {}


def reference(kind: str) -> bytes:
    """Return the scores of the weights, audited in this process."""
    if kind not in _references:
        assert audit(kind, f"{kind}-weights", "weights.pt") == 0
        _references[kind] = scores(f"{kind}-weights")
    return _references[kind]


@contextmanager
def endpoint(port: int, fault: str = "", after: int = 0) -> Iterator[subprocess.Popen[bytes]]:
    """Serve the model in a process of its own, which misbehaves at request ``after``."""
    server = subprocess.Popen([sys.executable, "endpoint.py", str(port), fault, str(after)], env=dict(os.environ))
    try:
        yield server
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()


def served() -> int:
    """Return how many inputs the servers have answered."""
    return sum(map(int, Path("served.log").read_text().split()))


@pytest.fixture(autouse=True)
def _count_anew(place: Path) -> None:
    (place / "served.log").write_text("")


@pytest.mark.parametrize("kind", PLANS)
def test_a_server_that_is_killed_and_comes_back_changes_no_bit(kind: str, port: int) -> None:
    """Compared with one that stays; its scores are those of the weights, up to how logits of 64 inputs are rounded."""
    reference(kind)
    url = f"http://127.0.0.1:{port}/predict"
    asked = ASKED | {"patience": 120.0, "batch": 64}
    with endpoint(port):
        assert audit(kind, f"{kind}-calm", url, asked | {"record": "calm-answers", "identity": f"calm {kind}"}) == 0
    wanted = scores(f"{kind}-calm")
    assert_frame_equal(
        *(pq.read_table(f"{kind}-{of}/scores.parquet").to_pandas() for of in ("calm", "weights")), rtol=1e-4
    )
    Path("served.log").write_text("")
    asked |= {"record": f"{kind}-answers", "identity": kind}
    lives = []

    def keep_alive() -> None:
        with endpoint(port, "die", 4) as first:
            lives.append(first)
            first.wait()
        with endpoint(port) as second:
            lives.append(second)
            over.wait()

    over = threading.Event()
    keeper = threading.Thread(target=keep_alive)
    keeper.start()
    try:
        assert audit(kind, f"{kind}-served", url, asked) == 0
    finally:
        over.set()
        keeper.join()
    assert len(lives) == 2 and lives[0].returncode == 1
    assert scores(f"{kind}-served") == wanted
    told = json.loads(Path(f"{kind}-served", "result.json").read_text())["served"]
    assert told["served"] == served() == rows(f"{kind}-answers") <= told["asked"]
    assert audit(kind, f"{kind}-again", url, asked) == 0  # nobody is there, and nobody is asked
    assert scores(f"{kind}-again") == wanted


def rows(record: str) -> int:
    return sum(pq.read_metadata(file).num_rows for file in Path(record).glob("*/*.parquet"))


def test_an_audit_that_a_silent_server_ends_goes_on_where_it_was(
    port: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kind = next(iter(PLANS))
    wanted, url = reference(kind), f"http://127.0.0.1:{port}/predict"
    asked = ASKED | {"record": "silent-answers", "patience": 15.0, "batch": 64, "identity": "silent"}
    with endpoint(port, "die", 4):
        assert audit(kind, "silent", url, asked) == 3
    assert "what is recorded is kept" in capsys.readouterr().err
    assert 0 < (before := served()) == rows("silent-answers")
    with endpoint(port):
        assert audit(kind, "silent", url, asked | {"patience": 60.0}) == 0
    assert scores("silent") == wanted and before < served() == rows("silent-answers")


@pytest.mark.parametrize(
    ("fault", "code", "says"),
    [
        ("429", 0, ""),
        ("500", 0, ""),
        ("garbage", 2, "no JSON"),
        ("nan", 2, "NaN"),
        ("names", 2, "a score for 'a'; classes are called"),
    ],
)
def test_a_faulty_answer_is_asked_again_or_refused(
    fault: str,
    code: int,
    says: str,
    port: int,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kind = next(iter(PLANS))
    wanted, url = reference(kind), f"http://127.0.0.1:{port}/predict"
    asked = ASKED | {"record": f"{fault}-answers", "batch": 64, "identity": fault}
    with endpoint(port, fault, 3):
        assert audit(kind, fault, url, asked) == code
        if code:
            error = capsys.readouterr().err.strip().splitlines()[-1]
            assert error.startswith("orch: ") and says in error
            assert audit(kind, fault, url, asked) == 0
    assert scores(fault) == wanted and served() == rows(f"{fault}-answers")


@pytest.mark.needs("bash")  # MLflow starts its server by it
def test_mlflows_server_gives_the_bits_of_the_weights(place: Path, port: int) -> None:
    import mlflow

    net = nn.Sequential(nn.Flatten(), nn.Linear(196, 64), nn.ReLU(), nn.Linear(64, 10)).eval()
    net.load_state_dict(torch.load(place / "weights.pt"))
    x = torch.rand(2, 1, 14, 14)
    signature = mlflow.models.infer_signature(x.numpy(), net(x).detach().numpy())
    mlflow.pytorch.save_model(net, "model", signature=signature, serialization_format="pickle")
    wanted = {kind: reference(kind) for kind in PLANS}
    with mlflow_server(Path("model"), port):
        for kind in PLANS:
            asked = {"gives": "logits", "record": "mlflow-answers", "patience": 300.0, "identity": f"mlflow {kind}"}
            assert audit(kind, f"{kind}-mlflow", f"http://127.0.0.1:{port}", asked) == 0
            assert scores(f"{kind}-mlflow") == wanted[kind]
