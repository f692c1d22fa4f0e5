"""A cluster on this machine whose autoscaler starts nodes on demand, from none (Ray's own provider for tests)."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

HEAD_ID = "f" * 51 + "00000"
MEMORY = 100 * 2**20


@contextlib.contextmanager
def growing_cluster(
    folder: Path,
    kinds: Mapping[str, Mapping[str, Any]],
    *,
    cpus: int = 2,
    idle_minutes: float = 0.1,
    version: int = 1,
) -> Iterator[str]:
    """Yield the address of a cluster of one head with ``cpus``; ``kinds``: name → resources and max_workers.

    ``version``: Ray's first autoscaler, or the second one, which it takes by default where a cloud starts the nodes.
    What Ray's ``AutoscalingCluster`` does, but on a port of its own and without ``ray stop``, which would end every
    cluster of this machine.
    """
    import ray._private.services

    folder.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    address = f"{ray._private.services.get_node_ip_address()}:{port}"
    types: dict[str, Any] = {
        name: {
            "resources": {"object_store_memory": MEMORY, **kind["resources"]},
            "node_config": {},
            "min_workers": 0,
            "max_workers": kind["max_workers"],
        }
        for name, kind in kinds.items()
    }
    types["ray.head.default"] = {"resources": {"CPU": cpus}, "node_config": {}, "max_workers": 0}
    lists = ["rsync_exclude", "rsync_filter", "cluster_synced_files", "initialization_commands"]
    lists += [f"{whose}_commands" for whose in ("setup", "head_setup", "worker_setup", "head_start_ray")]
    lists += ["worker_start_ray_commands"]
    config = {
        "cluster_name": "growing",
        "max_workers": 8,
        "idle_timeout_minutes": idle_minutes,
        "upscaling_speed": 1.0,
        "provider": {
            "type": "external",  # the defaults of fake_multinode lie in a file that wheels of Ray lack
            "module": "ray.autoscaler._private.fake_multi_node.node_provider.FakeMultiNodeProvider",
            "use_node_id_as_ip": True,
            "disable_node_updaters": True,
            "disable_launch_config_check": True,
            "gcs_address": address,
            "launch_multiple": version == 2,
            "head_node_id": HEAD_ID,
        },
        "available_node_types": types,
        "head_node_type": "ray.head.default",
        "file_mounts": {},
        "file_mounts_sync_continuously": False,
        "auth": {},
        **{name: [] for name in lists},
    }
    (folder / "autoscaling.json").write_text(json.dumps(config))
    environment = {
        **os.environ,
        "AUTOSCALER_UPDATE_INTERVAL_S": "1",
        "RAY_FAKE_CLUSTER": "1",
        "RAY_enable_autoscaler_v2": str(version - 1),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    if version == 2:
        environment |= {"RAY_CLOUD_INSTANCE_ID": HEAD_ID, "RAY_OVERRIDE_NODE_ID_FOR_TESTING": HEAD_ID}
    ray_command = str(Path(sys.executable).parent / "ray")
    short = tempfile.mkdtemp(prefix="grow")  # Ray's sockets lie there, and their paths must be short
    started = subprocess.Popen(
        [ray_command, "start", "--head", "--block", f"--port={port}", f"--num-cpus={cpus}",
         f"--object-store-memory={MEMORY}", f"--autoscaling-config={folder / 'autoscaling.json'}",
         "--include-dashboard=false", f"--temp-dir={short}"],
        env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    try:
        _wait_for(address)
        yield address
    finally:
        started.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(10)
        _kill_all(short)
        shutil.rmtree(short, ignore_errors=True)


def _free_port() -> int:
    """Return a port below those that connections and Ray's workers are given, so that it stays free."""
    for port in random.SystemRandom().sample(range(6400, 9400), 100):
        with socket.socket() as found, contextlib.suppress(OSError):
            found.bind(("", port))
            return port
    raise OSError("no free port")


def _wait_for(address: str) -> None:
    host, _, port = address.rpartition(":")
    for _ in range(300):
        with contextlib.suppress(OSError):
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        time.sleep(0.1)
    raise TimeoutError(f"no cluster at {address}")


def _kill_all(mark: str) -> None:
    """Kill every process whose command line names ``mark``."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if mark in (entry / "cmdline").read_bytes().decode(errors="replace"):
                    os.kill(int(entry.name), signal.SIGKILL)
