"""Models logged in MLflow: each answers, loaded from there, as it does in the store, and is what its entry says."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from audits.errors import BadInput
from audits.models.base import make_model
from audits.training.loop import logits
from audits.training.transfer import TORCHVISION_INPUTS, standardised
from orchestrator.cli.main import main
from orchestrator.engine.jobs.job import Reference
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.sections import Model
from orchestrator.engine.published import Published, bytes_of, listed
from orchestrator.engine.run.served_model import built
from orchestrator.engine.run.tracking_models import example, save
from orchestrator.engine.run.tracking_server import quiet_mlflow
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named, load_plan, open_design
from tests.cases.kept import finished
from tests.cases.runs import UnshownRun, begun, context_of
from tests.cases.smallest_plans import smallest_plan
from tests.orchestrator.engine.run.small_plans import small_plan
from tune_spaces.registry import Sweep

LOGGED = {
    "apollo": {f"{made}-{number}" for made in ("target", "gradient_ascent", "retrain") for number in range(2)},
    "mia": {f"target-{number}" for number in range(6)},
    "gnq": {
        f"{made}-{number}"
        for made in ("target", "gnq_log-0_2", "random-0_2", "noise-gnq_log-0_2-1", "dp-8")
        for number in range(4)
    },
    "tmia": {f"target-{number}" for number in range(4)},
}
KEPT = {".json", ".safetensors", ".yaml", ".txt", ".py", ""}
ALONE = """
import sys
import mlflow.pyfunc
import numpy as np
model = mlflow.pyfunc.load_model(sys.argv[1])
print(model.predict(np.zeros((1, 1, 8, 8), np.float32))["labels"].tolist())
assert "ray" not in sys.modules
"""


@pytest.fixture(autouse=True)
def _log_the_models(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs that are not shown be logged at their end all the same."""
    monkeypatch.setattr(UnshownRun, "track", UnshownRun.__mro__[1].track)


def logging(plan: BasePlan, place: Path, which: str) -> BasePlan:
    uri = f"sqlite:///{place}/mlflow.db"
    return plan.changed({"tracking.log_models": which, "tracking.uri": uri})


def smallest_mia(place: Path, **more: Any) -> BasePlan:
    """Return the smallest plan of its kind, whose models its store has already."""
    shutil.copytree(finished("mia").with_name("store"), place / "store", dirs_exist_ok=True)
    return smallest_plan("mia", place / "store", **{"audit.attacks": ["loss"], **more})


def logged(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return what MLflow has of the models of a run, by name."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=document["tracking"]["uri"])
    found = document["tracking"]["models"]["uris"]
    return {name: client.get_logged_model(uri.removeprefix("models:/")) for name, uri in found.items()}


def listed_by(document: Mapping[str, Any], run: str) -> set[str]:
    """Return the models that a run lists as its own."""
    from mlflow import MlflowClient

    outputs = MlflowClient(tracking_uri=document["tracking"]["uri"]).get_run(run).outputs
    return {each.model_id for each in outputs.model_outputs}


def folder_of(model: Any) -> Path:
    return Path(model.artifact_location.removeprefix("file://"))


@pytest.mark.parametrize(
    ("kind", "which"),
    [("mia", "first"), *(pytest.param(kind, "targets", marks=pytest.mark.long) for kind in LOGGED)],
)
def test_logged_models_answer_as_those_of_the_store(
    kind: str, which: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    import mlflow.pyfunc

    plan = smallest_mia(tmp_path) if kind == "mia" else small_plan(kind, tmp_path / "store")
    plan = logging(plan, tmp_path, which)
    document = begun(plan, tmp_path / "out", f"{kind}-audit").audit().to_json()
    models, store = logged(document), Store(tmp_path / "store")
    assert {*models} == (LOGGED[kind] if which == "targets" else {"target-0"}) and document["tracking"]["models"][
        "new"
    ] == len(models)
    said = "".join(capfd.readouterr())
    known = {model.reference.key: model for model in kind_named(plan.kind).published(open_design(plan, store))}
    assert f"MLflow gets {len(models)} model" in said and "pickle" not in said
    assert document["tracking"]["models"]["bytes"] >= bytes_of(
        [known[model.tags["orch.key"]] for model in models.values()]
    )
    parent = document["tracking"]["parent"]
    assert listed_by(document, parent) == {model.model_id for model in models.values()}
    data, context = open_design(plan, store).data, context_of(plan, store)
    points = data.tensors(np.arange(64), "cpu").x
    for name, model in list(models.items())[:: max(1, len(models) // 2)]:
        assert model.name == name and model.source_run_id == parent and model.status.value == "READY"
        assert model.tags["orch.kind"] == kind and model.tags["orch.seed"] == str(plan.seed)
        assert model.tags["orch.fingerprint"] == data.fingerprint
        made = "as it was trained" if model.tags["orch.made_by"] == "train" else f"made by {model.tags['orch.made_by']}"
        assert f"({kind}) has judged, {made}, " in model.tags["mlflow.note.content"]
        files = [file for file in folder_of(model).rglob("*") if file.is_file()]
        assert {file.suffix for file in files} <= KEPT and "python_model.pkl" not in {file.name for file in files}
        loaded = mlflow.pyfunc.load_model(str(folder_of(model)))
        assert loaded.metadata.metadata["orch.key"] == model.tags["orch.key"]
        inputs, outputs = loaded.metadata.signature.inputs, loaded.metadata.signature.outputs
        assert inputs.inputs[0].shape == (-1, *data.shape) and inputs.inputs[0].type == np.float32
        assert {each.name: each.shape for each in outputs.inputs} == {
            "logits": (-1, len(data.classes)),
            "labels": (-1,),
        }
        published = known[model.tags["orch.key"]]
        wanted = logits(context.stored(published.reference, published.build), points)
        found = loaded.predict(points.float().div(255).numpy() if points.dtype == torch.uint8 else points.numpy())
        assert np.array_equal(found["logits"], wanted.numpy())
        assert np.array_equal(found["labels"], wanted.argmax(1).numpy())
        shown = loaded.input_example
        assert shown.shape == (1, *data.shape)
        assert not (data.tensors(np.arange(len(data)), "cpu").all()[0].numpy() == shown).all((1, 2, 3)).any()


def test_no_file_of_the_working_folder_goes_into_a_logged_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """MLflow takes the files of a project of uv along; who made the folder may have made these links to others."""
    for name in ("MLFLOW_UV_AUTO_DETECT", "MLFLOW_LOG_UV_FILES"):
        monkeypatch.setenv(name, "true")
    (tmp_path / "theirs").mkdir()
    (tmp_path / "private").write_text("a marked word")
    for name in ("uv.lock", "pyproject.toml", ".python-version"):
        (tmp_path / "theirs" / name).symlink_to(tmp_path / "private")
    plan = smallest_mia(tmp_path)
    model = kind_named("mia").published(open_design(plan, Store(tmp_path / "store")))[0]
    entry = SimpleNamespace(artifact_location=str(tmp_path / "models"), model_id="m-1")
    (tmp_path / "saved").mkdir()
    monkeypatch.chdir(tmp_path / "theirs")
    with quiet_mlflow():
        save(tmp_path / "saved", entry, "run", model, b"weights", {}, plan)  # type: ignore[arg-type]  # as much as it reads
    files = [file for file in (tmp_path / "saved" / "model").rglob("*") if file.is_file()]
    assert "MLmodel" in {file.name for file in files}
    assert not [file for file in files if b"a marked word" in file.read_bytes()]


@pytest.mark.long
def test_weights_are_logged_once_however_often_they_are_used(tmp_path: Path) -> None:
    plan = logging(smallest_mia(tmp_path), tmp_path, "first")
    first = begun(plan, tmp_path / "out", "mia-audit").audit().to_json()
    again = begun(plan, tmp_path / "out", "mia-audit").audit().to_json()
    assert first["tracking"]["parent"] == again["tracking"]["parent"]  # a finished run that is run again is one run
    assert first["tracking"]["models"]["new"] == 1 and again["tracking"]["models"]["new"] == 0
    assert first["tracking"]["models"]["uris"] == again["tracking"]["models"]["uris"]
    (model,) = logged(again).values()
    for document in (first, again):
        assert listed_by(document, document["tracking"]["parent"]) == {model.model_id}
        assert listed_by(document, document["tracking"]["children"]["base"]) == {model.model_id}
    assert len(list(tmp_path.rglob("weights.safetensors"))) == 1  # outside the store, where names are longer
    settings = {f"e={epochs}": {"recipe.epochs": epochs} for epochs in (2, 3)}
    sweep = Sweep("epochs", "Epochs", "mia-smoke", lambda _: settings, "loss.auc", "")
    swept = begun(plan, tmp_path / "swept", "epochs").sweep(sweep).to_json()
    uris = swept["tracking"]["models"]["uris"]
    assert {*uris} == {"target-0-e=2", "target-0-e=3"} and swept["tracking"]["models"]["new"] == 1
    assert uris["target-0-e=2"] in first["tracking"]["models"]["uris"].values()
    children = swept["tracking"]["children"]
    for name, child in children.items():
        assert listed_by(swept, child) == {uris[f"target-0-{name}"].removeprefix("models:/")}


def test_nothing_is_logged_unless_it_is_asked_for(tmp_path: Path) -> None:
    plan = small_plan("mia", tmp_path / "store").changed({"tracking.uri": f"sqlite:///{tmp_path}/mlflow.db"})
    run = begun(plan, tmp_path / "out", "mia-audit")
    assert plan.tracking.log_models == "none" and run.models_to_log(run.laid_out(plan.settings())) == []


OWN = """
from torch import nn

class Net(nn.Module):
    def __init__(self, shape, classes, width: int = 8):
        super().__init__()
        self.body = nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, classes))

    def forward(self, x):
        return self.body(x)
"""


@pytest.mark.long
def test_a_model_of_ones_own_class_is_served_where_its_module_can_be_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("served_nets.py").write_text(OWN)
    plan = smallest_mia(tmp_path).changed({"model": {"name": "python:served_nets:Net"}})
    document = begun(logging(plan, tmp_path, "first"), tmp_path / "out", "mia-audit").audit().to_json()
    (model,) = logged(document).values()
    (tmp_path / "elsewhere").mkdir()
    alone = [sys.executable, "-c", ALONE, str(folder_of(model))]
    there = subprocess.run(alone, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert there.returncode == 0 and json.loads(there.stdout)[0] in range(10), there.stderr
    away = subprocess.run(alone, capture_output=True, text=True, check=False, cwd=tmp_path / "elsewhere")
    assert away.returncode == 1
    assert "BadInput: python:served_nets:Net: importing 'served_nets'" in away.stderr.splitlines()[-1]


def test_audits_that_judge_no_model_of_their_own_refuse_to_log_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save(make_model("mlp", {"hidden": [8]}).build((1, 8, 8), 10, 0).state_dict(), "w.pt")
    shown = ["--set", "data.name=digits", "--set", "model.settings.hidden=[8]", "--members", "0:200"]
    assert main(["audit", "gnq", "--target", "w.pt", *shown, "--set", "model.name=mlp", "--log-models", "first"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "tracking.log_models is first" in line and "gnq-target" in line and "none" in line
    with pytest.raises(BadInput, match=r"tracking\.log_models is \"every\"; allowed: 'none', 'first' or 'targets'"):
        load_plan("mia-smoke", ["tracking.log_models=every"])


def published(name: str, number: int, key: str) -> Published:
    data = open_design(load_plan("mia-smoke")).data
    build: Callable[[], torch.nn.Module] = lambda: make_model("mlp", {"hidden": [8]}).build((1, 8, 8), 10, 0)  # noqa: E731
    model = Model(name="mlp", settings={"hidden": [8]})
    return Published(name, number, "train", Reference("train", key), model, data, data.classes, build)


def test_models_of_several_settings_are_told_apart_and_counted_once() -> None:
    one, two, three = published("target-0", 0, "a"), published("target-1", 1, "b"), published("target-0", 0, "c")
    found = listed("targets", {"base": [one, one, two], "rate=0.1": [three, two]})
    assert [(each.name, each.settings) for each in found] == [
        ("target-0-base", ("base",)),
        ("target-1", ("base", "rate=0.1")),
        ("target-0-rate=0_1", ("rate=0.1",)),
    ]
    assert [each.name for each in listed("first", {"base": [one, two]})] == ["target-0"]
    assert bytes_of(found) == 3 * 4 * (64 * 8 + 8 + 8 * 10 + 10)


def test_an_example_is_zeros_where_inputs_have_no_range() -> None:
    toy = open_design(load_plan("apollo-toy2d")).data
    assert toy.value_range is None and not example(toy).any() and example(toy).dtype == np.float32


def test_settings_that_name_a_file_to_start_from_are_left_out() -> None:
    bert = Model(name="bert", settings={"hidden": 8, "weights": "/somewhere", "digest": "0"})
    described = replace(published("target-0", 0, "a"), model=bert).described(threads=1)
    assert described["model"] == {"name": "bert", "settings": {"hidden": 8}}


def test_a_model_that_standardises_its_inputs_does_so_where_it_is_served() -> None:
    settings: dict[str, Any] = {"stem": "cifar", "width": 4}
    described = {
        "model": {"name": "resnet50", "settings": settings},
        "shape": [3, 32, 32],
        "classes": ["a", "b"],
        "scaled": True,
        "threads": 1,
    }
    served, x = built(described).eval(), torch.rand(2, 3, 32, 32)
    plain = make_model("resnet50", settings).build((3, 32, 32), 2, 0).eval()
    with torch.no_grad():
        assert not torch.equal(served(x), plain(x))
        assert torch.equal(served(x), standardised(plain, *TORCHVISION_INPUTS["resnet50"])(x))
