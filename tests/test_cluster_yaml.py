"""cluster.yaml is one that ``ray up`` accepts, installs this project, and opens nothing to the world."""

from __future__ import annotations

import copy
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent


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
    (install,) = (command for command in accept(written)["setup_commands"] if f"{place}[aws]" in command)
    assert "aws" in project["optional-dependencies"]
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
