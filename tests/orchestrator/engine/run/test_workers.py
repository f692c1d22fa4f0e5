"""What a run asks of a cluster: workers of which size, on what they compute, and nothing where all is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from actors.first_worker import Hardware
from audits.errors import BadInput
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.workers import AS_THEY_COME, hire
from orchestrator.engine.store.store import Store
from orchestrator.kinds import load_plan, open_design


def plan_of(**compute: Any) -> BasePlan:
    """Return a small plan for a cluster."""
    values = {f"compute.{name}": value for name, value in {"address": "10.0.0.1:6379", **compute}.items()}
    return load_plan("apollo-smoke", values=values)


def hired(folder: Path, plan: BasePlan, done: bool = False, last_gpu: str = "") -> Any:
    """Return plan, device and workers."""
    return hire(plan, Store(folder), Terminal(), lambda plan, device: done, last_gpu)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is asked of the cluster, whose workers have an A10G each."""
    questions: list[Any] = []

    def first_worker(workers: Any, gpus: Any, tell: Any) -> Hardware:
        questions.append(gpus)
        return Hardware("cuda", "NVIDIA A10G", 1.0 if gpus == "auto" else gpus)

    monkeypatch.setattr("orchestrator.engine.run.workers.first_worker", first_worker)
    return questions


def test_the_device_is_that_of_a_first_worker_and_its_gpu_is_in_the_plan_and_the_keys(
    tmp_path: Path, asked: list[Any]
) -> None:
    plan, device, workers = hired(tmp_path, plan_of())
    assert (asked, device, plan.compute.gpu) == (["auto"], "cuda", "NVIDIA A10G")
    assert (workers.count, workers.gpus, workers.engine, workers.head) == (AS_THEY_COME, 1.0, "actors", False)
    other = plan.changed({"compute.gpu": "NVIDIA H100"})
    keys = [open_design(each, device="cuda").jobs()[0].key for each in (plan, other)]
    assert keys[0] != keys[1]
    assert plan.plan_hash == other.plan_hash == plan_of().plan_hash


@pytest.mark.parametrize(
    "name", ["apollo-fashion14", "tmia-fashion14", "gnq-fashion14", "mia-fashion14", "apollo-imagenet"]
)
def test_shipped_plans_take_the_gpus_that_a_cluster_has(tmp_path: Path, asked: list[Any], name: str) -> None:
    plan = load_plan(name, values={"compute.address": "10.0.0.1:6379"})
    assert hired(tmp_path, plan)[1] == "cuda"
    assert asked == ["auto"]


def test_on_a_cpu_the_keys_do_not_depend_on_where_the_plan_runs() -> None:
    changes = {"gpu": "NVIDIA A10G", "gpus_per_worker": 1, "engine": "actors", "head": True, "cpus_per_worker": 2}
    keys = [open_design(plan_of(**each), device="cpu").jobs()[0].key for each in ({}, changes)]
    assert keys[0] == keys[1]


def test_a_gpu_of_another_model_is_refused(tmp_path: Path, asked: list[Any]) -> None:
    with pytest.raises(BadInput, match=r"compute.gpu is 'NVIDIA H100', but workers have 'NVIDIA A10G'"):
        hired(tmp_path, plan_of(gpu="NVIDIA H100"))


@pytest.mark.parametrize(("compute", "gpus"), [({"device": "cpu"}, 0.0), ({"gpus_per_worker": 0}, 0.0)])
def test_nobody_is_asked_for_a_gpu_where_none_is_wanted(
    tmp_path: Path, asked: list[Any], compute: dict[str, Any], gpus: float
) -> None:
    _, device, workers = hired(tmp_path, plan_of(workers=3, **compute))
    assert (asked, device, workers.count, workers.gpus) == ([], "cpu", 3, gpus)


def test_nobody_is_asked_where_all_is_done_on_a_cpu_or_on_the_gpu_of_the_last_run(
    tmp_path: Path, asked: list[Any]
) -> None:
    assert hired(tmp_path, plan_of(), done=True)[1] == "cpu"
    plan, device, _ = hired(tmp_path, plan_of(device="cuda"), done=True, last_gpu="NVIDIA A10G")
    assert (device, plan.compute.gpu, asked) == ("cuda", "NVIDIA A10G", [])
    store = Store(tmp_path)
    store.record_run("audit", plan.deciding(), {}, "NVIDIA A10G")
    assert store.recorded_gpu("audit", plan.deciding()) == "NVIDIA A10G"
    assert store.recorded_gpu("sweep", plan.deciding()) == ""


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        ({"device": "cuda", "gpus_per_worker": 0}, "compute.device is cuda, but compute.gpus_per_worker is 0"),
        ({"engine": "train"}, "a group on a cluster needs a number of workers"),
        ({"device": "cuda:1"}, "compute.device is cuda:1; on a cluster give cuda"),
    ],
)
def test_what_cannot_be_on_a_cluster_is_refused(tmp_path: Path, compute: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        hired(tmp_path, plan_of(**compute))


def test_workers_that_hold_gpus_which_torch_does_not_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.engine.run.workers.first_worker", lambda *_: Hardware("cpu", "", 1.0))
    _, device, workers = hired(tmp_path, plan_of())
    assert (device, workers.gpus) == ("cpu", 1.0)
    with pytest.raises(BadInput, match="torch finds no GPU on a worker of the cluster"):
        hired(tmp_path, plan_of(device="cuda"))


@pytest.mark.parametrize(("workers", "share"), [("auto", 1.0), (2, 1.0), (3, 0.5), (5, 1 / 3)])
def test_more_workers_than_gpus_share_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: Any, share: float
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device: "NVIDIA A10G")
    monkeypatch.setattr("orchestrator.engine.run.workers.size_workers", lambda *_, **__: 2)
    plan, device, found = hired(tmp_path, plan_of(workers=workers, address=None))
    assert (device, plan.compute.gpu, found.gpus, found.engine) == ("cuda", "NVIDIA A10G", share, "train")


def test_a_gpu_that_is_not_there_is_refused_here_and_left_to_a_cluster(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="torch finds no GPU on this machine; give cpu or auto"):
        hired(tmp_path, plan_of(device="cuda", address=None))
    assert open_design(plan_of(device="cuda")).device == "cuda"
