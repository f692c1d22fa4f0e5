"""What a run asks of a cluster: workers of which size, on what they compute, and nothing where all is done."""

from __future__ import annotations

import os
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


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of the user's own, in a folder of its own; nobody is trusted."""
    folder = tmp_path / "team" / "project"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ORCH_ALLOW_STORES", raising=False)
    return folder


def exposed(place: Path, whose: str) -> None:
    """Let others change what lies in ``place``."""
    if whose == "another's" and os.geteuid() == 0:
        os.chown(place, 54321, -1)
    else:
        place.chmod(0o777)


@pytest.mark.parametrize("where", ["team/project", "team", "team/project/store.ray"])
@pytest.mark.parametrize("whose", ["all's", "another's"])
def test_what_others_can_change_is_no_folder_for_the_nodes_of_a_cluster(
    project: Path, monkeypatch: pytest.MonkeyPatch, where: str, whose: str
) -> None:
    """Ray would read and write there. Who shares a store on purpose has said so."""
    place, plan, store = project.parent.parent / where, plan_of(device="cpu"), project / "store"
    (project / "store.ray").mkdir()
    assert hired(store, plan)[2].storage == f"{store}.ray"
    exposed(place, whose)
    with pytest.raises(BadInput, match=rf"{place} belongs .*--store.*ORCH_ALLOW_STORES={store}$"):
        hired(store, plan)
    here = plan_of(device="cpu", address=None, workers=1)
    assert hired(store, here)[2].storage == f"{store}.ray"  # a private cluster takes another place by itself
    monkeypatch.setenv("ORCH_ALLOW_STORES", str(store))
    assert hired(store, plan)[2].storage == f"{store}.ray"


def test_the_folder_that_nodes_share_is_for_its_owner_alone(project: Path) -> None:
    before = os.umask(0)
    try:
        hired(project / "store", plan_of(device="cpu"))
    finally:
        os.umask(before)
    assert (project / "store.ray").stat().st_mode & 0o777 == 0o700


def test_with_a_bucket_rays_files_lie_where_nobody_else_can_change_them(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def storage() -> str:
        return str(hire(plan_of(device="cpu"), Store("s3://bucket/store"), Terminal(), lambda *_: False)[2].storage)

    assert storage() == str(project / ".orch" / "ray")
    project.chmod(0o777)
    assert storage() == str(tmp_path / "home" / ".orch" / "ray")
    (tmp_path / "home").chmod(0o777)
    with pytest.raises(BadInput, match=rf"{project / '.orch' / 'ray'}: other users .*ORCH_ALLOW_STORES="):
        storage()
    monkeypatch.setenv("ORCH_ALLOW_STORES", "*")
    assert storage() == str(project / ".orch" / "ray")


@pytest.mark.parametrize("place", ["store.ray", ".orch", ".orch/ray"])
@pytest.mark.parametrize("led", ["elsewhere", "nowhere"])
def test_a_link_is_no_folder_for_the_nodes_of_a_cluster(project: Path, tmp_path: Path, place: str, led: str) -> None:
    link = project / place
    link.parent.mkdir(exist_ok=True)
    (tmp_path / "elsewhere").mkdir()
    link.symlink_to(tmp_path / led)
    store = Store("s3://bucket/store" if ".orch" in place else project / "store")
    plan = plan_of(device="cpu", store=store.uri)
    with pytest.raises(BadInput, match=rf"{place} cannot be written: it is a link"):
        hire(plan, store, Terminal(), lambda *_: False)
    assert not list((tmp_path / "elsewhere").iterdir()) and not (tmp_path / "nowhere").exists()
