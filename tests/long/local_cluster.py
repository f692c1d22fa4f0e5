"""The cluster of examples/clusters/local.yaml on hosts of this machine, with nothing changed but what hosts lack."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.long.hosts import ROOT, Hosts

FILE = ROOT / "examples" / "clusters" / "local.yaml"
NAMES = ("head", "one", "two", "laptop")
TOKEN_KEPT = "test -s ~/.ray/auth_token || ray get-auth-token --generate > /dev/null"
SSH = "ssh -i /srv/keys/client -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"


def config_for(hosts: Hosts) -> dict[str, Any]:
    """Return the file with the hosts' addresses, user and key; the checkout is used from where it is copied.

    Hosts reach no package registry and have the Python environment already, so that nothing is installed.
    """
    text = FILE.read_text()
    given = {
        "HEAD_ADDRESS": hosts.address("head"),
        "WORKER_1_ADDRESS": hosts.address("one"),
        "WORKER_2_ADDRESS": hosts.address("two"),
        "YOUR_USER": "root",
        "YOUR_KEY": "/srv/keys/client",
    }
    for word, value in given.items():
        assert word in text
        text = text.replace(word, value)
    config: dict[str, Any] = yaml.safe_load(text)
    values = "PYTHONPATH=~/orch RAY_AUTH_MODE=token AWS_ACCESS_KEY_ID=key AWS_SECRET_ACCESS_KEY=secret"
    config["setup_commands"] = [
        config["setup_commands"][0],
        f"grep -q PYTHONPATH ~/.bashrc || echo 'export {values}' >> ~/.bashrc",
    ]
    return config


def write_config(hosts: Hosts) -> None:
    """Leave ``local.yaml`` and a token in the laptop's home."""
    home = hosts.folder / "laptop" / "home"
    (home / "local.yaml").write_text(yaml.safe_dump(config_for(hosts), sort_keys=False))
    made = hosts["laptop"].run(TOKEN_KEPT)
    assert made.returncode == 0, made.stdout


def nodes(hosts: Hosts) -> int:
    """Return how many nodes of the cluster Ray calls alive."""
    script = "import ray; ray.init(address='auto', log_to_driver=False); print(sum(n['Alive'] for n in ray.nodes()))"
    said = hosts["head"].run(f'PYTHONPATH=~/orch python -c "{script}" 2> /dev/null').stdout.split()
    return int(said[-1]) if said and said[-1].isdecimal() else 0


def ray_processes(hosts: Hosts, name: str) -> list[str]:
    """Return the command lines of Ray's processes on a host."""
    lines = hosts[name].run("ps -eo args").stdout.splitlines()
    return [line[:100] for line in lines if "raylet" in line or "gcs_server" in line or "ray::" in line]


def wait_until(holds: Callable[[], bool], what: str, seconds: float) -> float:
    """Wait until ``holds()`` and return how long that took; fail after ``seconds``."""
    begun = time.monotonic()
    while not holds():
        assert time.monotonic() - begun < seconds, f"{what}: not within {seconds:g} s"
        time.sleep(0.5)
    return time.monotonic() - begun


def last_lines(log: Path, count: int = 40) -> str:
    """Return the end of a log, for messages of failed tests."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-count:])
