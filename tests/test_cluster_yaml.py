"""cluster.yaml and examples/clusters: accepted as they stand, with this project, and nothing open to the world.

``local.yaml`` is run by ``tests/long/test_ray_up.py``.
"""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
CLUSTERS = ROOT / "examples" / "clusters"


@pytest.fixture
def written() -> dict[str, Any]:
    """The file as it is written."""
    config: dict[str, Any] = yaml.safe_load((ROOT / "cluster.yaml").read_text())
    return config


def accept(config: dict[str, Any]) -> dict[str, Any]:
    """Return the configuration as ``ray up`` fills it in and checks it."""
    from ray.autoscaler._private.util import prepare_config, validate_config

    prepared: dict[str, Any] = prepare_config(copy.deepcopy(config))
    validate_config(prepared)
    return prepared


def test_ray_accepts_it(written: dict[str, Any]) -> None:
    assert accept(written)["cluster_name"] == "orch"


@pytest.mark.parametrize("change", [{"max_worker": 4}, {"max_workers": "many"}, {"provider": {"region": "us-east-1"}}])
def test_the_check_refuses_a_broken_file(written: dict[str, Any], change: dict[str, Any]) -> None:
    from jsonschema import ValidationError

    with pytest.raises((ValidationError, ValueError, KeyError)):
        accept({**written, **change})


def test_head_type_exists_and_has_no_gpu(written: dict[str, Any]) -> None:
    head = written["available_node_types"][written["head_node_type"]]
    assert not head["resources"].get("GPU", 0)


def test_workers_have_gpus_and_start_from_none(written: dict[str, Any]) -> None:
    workers = {k: v for k, v in accept(written)["available_node_types"].items() if k != written["head_node_type"]}
    assert workers
    for worker in workers.values():
        assert worker["resources"]["GPU"] >= 1
        assert worker["min_workers"] == 0
        assert worker["min_workers"] <= worker["max_workers"] <= written["max_workers"]


def test_the_synced_project_is_installed_with_a_matching_torch_in_one_call(written: dict[str, Any]) -> None:
    (place,) = (remote for remote, local in written["file_mounts"].items() if local == ".")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (install,) = (command for command in accept(written)["setup_commands"] if f"{place}[aws,cluster]" in command)
    assert {"aws", "cluster"} <= project["optional-dependencies"].keys()
    for name in ("torch", "torchvision"):
        (wanted,) = (spec for spec in project["dependencies"] if spec.partition(">")[0] == name)
        assert f'"{wanted}"' in install


def test_images_have_the_ray_and_python_that_the_project_asks_for(written: dict[str, Any]) -> None:
    import ray

    for image in (written["docker"]["head_image"], written["docker"]["worker_image"]):
        assert image.startswith(f"rayproject/ray:{ray.__version__}-py311")


def test_every_node_demands_the_token(written: dict[str, Any]) -> None:
    assert any(remote.endswith("/.ray/auth_token") for remote in written["file_mounts"])
    for kind in ("head_start_ray_commands", "worker_start_ray_commands"):
        (start,) = (command for command in written[kind] if "ray start" in command)
        assert "RAY_AUTH_MODE=token" in start


def test_no_port_is_open_to_the_world(written: dict[str, Any]) -> None:
    assert "0.0.0.0" not in (ROOT / "cluster.yaml").read_text()
    for node in written["available_node_types"].values():
        assert node["node_config"]["SecurityGroupIds"], "without a group of the user's, Ray opens SSH to all addresses"
        assert node["node_config"]["MetadataOptions"]["HttpTokens"] == "required"
        assert all(disk["Ebs"]["Encrypted"] for disk in node["node_config"]["BlockDeviceMappings"])


def test_what_is_large_or_private_stays_at_home(written: dict[str, Any]) -> None:
    assert {".git", ".venv", ".orch", "mlruns", "mlflow.db"} <= set(written["rsync_exclude"])


@pytest.fixture
def local() -> dict[str, Any]:
    """The cluster of one's own machines, as it is written."""
    config: dict[str, Any] = yaml.safe_load((CLUSTERS / "local.yaml").read_text())
    return config


def test_every_variant_is_tested_here() -> None:
    assert {path.name for path in CLUSTERS.iterdir()} == {"kuberay.yaml", "local.yaml"}


def test_ones_own_machines_are_all_taken(local: dict[str, Any]) -> None:
    (kind,) = accept(local)["available_node_types"].values()
    assert kind["min_workers"] == kind["max_workers"] == len(local["provider"]["worker_ips"])


def test_ones_own_head_says_its_address_and_counts_workers_as_the_first_autoscaler(local: dict[str, Any]) -> None:
    (start,) = (command for command in local["head_start_ray_commands"] if "ray start" in command)
    assert f"--node-ip-address={local['provider']['head_ip']} " in start
    assert "RAY_enable_autoscaler_v2=0 " in start


def test_what_holds_for_all_that_ray_starts(written: dict[str, Any], local: dict[str, Any]) -> None:
    assert set(local["rsync_exclude"]) == set(written["rsync_exclude"])
    for config in (written, local):
        setup = "\n".join(config["setup_commands"])
        assert "torch>=2.11" in setup and "torchvision>=0.26" in setup and "RAY_AUTH_MODE=token" in setup
        assert [place for place in config["file_mounts"] if place.endswith("/.ray/auth_token")]
        for kind in ("head_start_ray_commands", "worker_start_ray_commands"):
            (start,) = (command for command in config[kind] if "ray start" in command)
            assert "RAY_AUTH_MODE=token" in start
        (head,) = (command for command in config["head_start_ray_commands"] if "ray start" in command)
        assert "--dashboard-host=127.0.0.1" in head


RAY_CLUSTER = {
    "apiVersion": str,
    "kind": str,
    "metadata": {"name": str},
    "spec": {
        "rayVersion": str,
        "enableInTreeAutoscaling": bool,
        "autoscalerOptions": {"version": str, "idleTimeoutSeconds": int},
        "authOptions": {"mode": str},
        "headGroupSpec": {"serviceType": str, "rayStartParams": {"dashboard-host": str}, "template": {"spec": None}},
        "workerGroupSpecs": [
            {
                "groupName": str,
                "replicas": int,
                "minReplicas": int,
                "maxReplicas": int,
                "rayStartParams": {},
                "template": {"spec": None},
            }
        ],
    },
}
"""Fields and types of ray.io/v1 RayCluster in KubeRay's definition, those that the file uses; None: a pod's own."""


def fits(value: Any, shape: Any) -> bool:
    """Say whether a document has only fields of ``shape``, each of its type."""
    if isinstance(shape, dict):
        return isinstance(value, dict) and value.keys() <= shape.keys() and all(fits(value[k], shape[k]) for k in value)
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(one, shape[0]) for one in value)
    return shape is None or type(value) is shape


def test_kuberay_gets_fields_that_it_has_a_token_and_workers_from_none() -> None:
    text = (CLUSTERS / "kuberay.yaml").read_text()
    document = yaml.safe_load(text)
    assert fits(document, RAY_CLUSTER)
    assert not fits({**document, "specs": {}}, RAY_CLUSTER)
    assert (document["apiVersion"], document["kind"]) == ("ray.io/v1", "RayCluster")
    spec = document["spec"]
    assert spec["authOptions"] == {"mode": "token"} and spec["headGroupSpec"]["serviceType"] == "ClusterIP"
    (workers,) = spec["workerGroupSpecs"]
    assert workers["minReplicas"] == workers["replicas"] == 0 < workers["maxReplicas"]
    for group, gpus in ((spec["headGroupSpec"], 0), (workers, 1)):
        (container,) = group["template"]["spec"]["containers"]
        needs = container["resources"]
        assert needs["limits"] == needs["requests"]
        assert int(needs["limits"].get("nvidia.com/gpu", 0)) == gpus
    assert f"rayproject/ray:{spec['rayVersion']}-py311-gpu" in text
    assert "NOT RUN" in text
