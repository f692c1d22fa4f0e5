"""A model that somebody has put into the store in the place of the given one: no program of theirs is run."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import nn

from audits.errors import BadInput
from audits.models import make_model
from audits.own.permission import asking
from orchestrator.cli.main import BAD_INPUT, DONE, GATE_FAILED, main
from orchestrator.cli.permission import Permission
from orchestrator.engine.data import data_of
from orchestrator.engine.given_files import with_digests
from orchestrator.engine.jobs.job import Job, Reference
from orchestrator.engine.run.answered import check_asked
from orchestrator.engine.run.asked import ABOUT
from orchestrator.engine.run.opened import BYTES, PROGRAM
from orchestrator.engine.run.trusted import TrustedContexts
from orchestrator.engine.run.worker import WEIGHTS, WorkerContext
from orchestrator.engine.store.faults import CorruptArtefact
from orchestrator.engine.store.payloads import pack_arrays, pack_json
from orchestrator.engine.store.store import Store
from orchestrator.kinds import KINDS, kind_named, open_design, plan_from
from tests.cases.runs import audited
from tests.orchestrator.toy.bench import Bench

MODEL: dict[str, Any] = {"name": "mlp", "settings": {"hidden": [8]}}
ABOUT_SCRIPT = {"form": "torchscript", "field": "weights", "reading": {"classes": 10, "gives": "logits"}}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(KINDS, "toy", "tests.cases.given_kind:KIND")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def net() -> nn.Module:
    return make_model("mlp", {"hidden": [8]}).build((1, 8, 8), 10, 3).eval()


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A list with an entry for each TorchScript that was loaded."""
    found: list[str] = []
    real: Callable[..., Any] = torch.jit.load
    monkeypatch.setattr(torch.jit, "load", lambda *args, **options: (found.append("loaded"), real(*args, **options))[1])
    return found


@pytest.mark.filterwarnings("ignore::FutureWarning")
def script(net: nn.Module, file: str) -> bytes:
    torch.jit.trace(net, torch.zeros(2, 1, 8, 8)).save(file)
    return Path(file).read_bytes()


def plan(weights: str, **target: Any) -> Any:
    described = {"weights": weights, "members": "0:60", "non_members": "60:120", **target}
    raw = {"audit": {"kind": "toy"}, "data": {"name": "digits"}, "model": MODEL, "target": described}
    return with_digests(plan_from({**raw, "compute": {"workers": 0, "store": "store"}}))


def opened(found: Any) -> tuple[Any, Job, WorkerContext[Any]]:
    """Return the design of a plan, the job that brings its model in, and a worker's context."""
    store = Store("store")
    design: Any = kind_named("toy").lay_out(found, data_of("digits", None, None), "cpu", store)
    return design, design.given_job("weights"), WorkerContext(kind_named("toy"), design, store)


def plant(job: Job, files: Mapping[str, bytes]) -> None:
    """Put other files under the key of a job, under checksums that are right."""
    Store("store").put(job.stage, job.key, job.document, {"metrics.json": b"{}", **files}, seconds=1.0)


def program(data: bytes, **about: Any) -> dict[str, bytes]:
    arrays = pack_arrays({BYTES: np.frombuffer(data, np.uint8)})
    return {PROGRAM: arrays, ABOUT: pack_json({**ABOUT_SCRIPT, **about})}


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("file", ["weights.pt", "weights.safetensors"])
def test_a_program_in_the_place_of_weights_is_not_run(file: str, gone: bool, net: nn.Module, loads: list[str]) -> None:
    if file.endswith(".pt"):
        torch.save(net.state_dict(), file)
    else:
        import safetensors.torch

        safetensors.torch.save_file(net.state_dict(), file)
    found = plan(file)
    design, job, context = opened(found)
    plant(job, program(script(net, "evil.ts")))
    if gone:
        Path(file).unlink()
    with pytest.raises(CorruptArtefact, match="--rebuild"):
        context.stored(design.given_model(), design.build)
    with pytest.raises(CorruptArtefact, match="--rebuild"):
        check_asked(design)
    with pytest.raises(CorruptArtefact, match="--rebuild"):
        audited(found, Path("out"))
    if not gone:
        audited(found, Path("out"), rebuild=True)
        assert WEIGHTS in Store("store").get(job.stage, job.key).files
    assert not loads


def test_another_program_than_that_of_the_plan_is_not_run(net: nn.Module, loads: list[str]) -> None:
    script(net, "model.ts")
    design, job, context = opened(plan("model.ts"))
    plant(job, program(script(nn.Sequential(net, nn.Softmax(1)), "evil.ts")))
    with pytest.raises(CorruptArtefact, match="another program"):
        context.stored(design.given_model(), design.build)
    assert not loads


@pytest.mark.parametrize("field", ["form", "reading"])
@pytest.mark.parametrize("value", [None, 3, [], "onnx", "weights", {"classes": -1}])
def test_nonsense_about_a_model_is_damage(field: str, value: Any, net: nn.Module, loads: list[str]) -> None:
    data = script(net, "model.ts")
    design, job, context = opened(plan("model.ts"))
    plant(job, program(data, **{field: value}))
    with pytest.raises(CorruptArtefact, match="--rebuild"):
        context.stored(design.given_model(), design.build)
    assert not loads


@pytest.mark.parametrize("file", ["model.ts", pytest.param("model.pt", marks=pytest.mark.long)])
def test_a_program_that_only_the_store_has_needs_permission(file: str, net: nn.Module, loads: list[str]) -> None:
    """Also where the name of its file, which is gone, may be one of weights."""
    data = script(net, file)
    found = plan(file)
    design, job, context = opened(found)
    plant(job, program(data))
    Path(file).unlink()
    with asking(lambda _: False):
        with pytest.raises(BadInput, match="--allow-code"):
            check_asked(design)
        with pytest.raises(BadInput, match="--allow-code"):
            context.stored(design.given_model(), design.build)
    assert not loads
    Path("mine.yaml").write_text(found.to_yaml())
    assert main(["audit", "toy", "mine.yaml", "--out", "out"]) == BAD_INPUT
    assert not loads
    assert main(["audit", "toy", "mine.yaml", "--out", "out", "--allow-code"]) == DONE
    assert loads


def test_a_worker_runs_no_program_that_its_driver_may_not(net: nn.Module, loads: list[str]) -> None:
    data = script(net, "model.ts")
    found = plan("model.ts")
    design, job, _ = opened(found)
    plant(job, program(data))
    fingerprint, plans = design.data.fingerprint, {found.plan_hash: found.resolved()}

    def model_in(contexts: TrustedContexts) -> None:
        """Have the model asked in a job of a worker, which nobody sits at."""
        context: Any = contexts.open(found.plan_hash)
        context.perform = lambda job: context.stored(design.given_model(), design.build)
        contexts.do(context, job)

    def handed_over() -> TrustedContexts:
        contexts = TrustedContexts(kind_named("toy"), plans, str(Path("store").resolve()), "cpu", fingerprint)
        return cast(TrustedContexts, pickle.loads(pickle.dumps(contexts)))

    with asking(Permission().may_run):
        refused = handed_over()
    with asking(Permission(everything=True).may_run):
        allowed = handed_over()
    with pytest.raises(BadInput, match="--allow-code"):
        model_in(refused)
    assert not loads
    model_in(allowed)
    model_in(handed_over())  # from Python nobody is asked
    assert len(loads) == 2


def test_verify_runs_no_program_that_only_the_store_has(net: nn.Module, loads: list[str]) -> None:
    script(net, "model.ts")
    found = plan("model.ts")
    audited(found, Path("out"))
    Path("model.ts").unlink()
    file = Path("out/plan.yaml")
    file.write_text(file.read_text().replace("workers: 0", "workers: 1"))
    loads.clear()
    assert main(["verify", "out"]) == BAD_INPUT
    assert main(["verify", "out", "--workers", "0"]) == BAD_INPUT
    assert not loads
    assert main(["verify", "out", "--workers", "0", "--allow-code"]) == DONE
    assert loads


def test_weights_in_the_place_of_a_program_are_refused(net: nn.Module) -> None:
    script(net, "model.ts")
    design, job, context = opened(plan("model.ts"))
    plant(job, {WEIGHTS: pack_arrays({name: each.numpy() for name, each in net.state_dict().items()})})
    with pytest.raises(CorruptArtefact, match="--rebuild"):
        context.stored(design.given_model(), design.build)


def test_a_program_in_the_place_of_a_trained_model_is_not_run(
    here: Path, net: nn.Module, loads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(KINDS, "toy", "tests.orchestrator.toy.kind:KIND")
    design: Any = open_design(Bench(here).plan())
    store = Store(str(here / "store"))
    job = next(job for job in design.jobs() if job.stage == "train")
    store.put("train", job.key, job.document, program(script(net, "evil.ts")), seconds=1.0)
    context: WorkerContext[Any] = WorkerContext(kind_named("toy"), design, store)
    with pytest.raises(CorruptArtefact, match="no weights"):
        context.stored(Reference("train", job.key), lambda: net)
    assert not loads


@pytest.fixture
def run(net: nn.Module) -> Path:
    """The folder of a finished audit of given weights."""
    torch.save(net.state_dict(), "weights.pt")
    audited(plan("weights.pt"), Path("out"))
    return Path("out")


def test_verify_compares_what_was_given_with_its_files(
    run: Path, net: nn.Module, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["verify", str(run), "--workers", "0", "--sample", "1"]
    assert main(words) == DONE
    _, job, _ = opened(plan("weights.pt"))
    state = {name: each.numpy() + np.float32(1e-3) for name, each in net.state_dict().items()}
    artefact = Store("store").get("given", job.key)
    plant(job, {WEIGHTS: pack_arrays(state), "metrics.json": artefact.read("metrics.json")})
    capsys.readouterr()
    assert main(words) == GATE_FAILED
    assert f"given/{job.key} differs: " in capsys.readouterr().out


def test_verify_says_which_files_it_could_not_compare(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("weights.pt").unlink()
    assert main(["verify", str(run), "--workers", "0", "--sample", "1"]) == DONE
    assert "not compared: weights.pt is not here" in capsys.readouterr().out
