"""``ray up`` with examples/clusters/local.yaml on three hosts: a submitted audit loses one of them, and has it back.

All that is typed and printed is left in ``story.log`` of the test's folder (``pytest --basetemp=FOLDER``).
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml

from orchestrator.cli.node_report import source_digest
from orchestrator.kinds import load_plan
from tests.cases.runs import audited
from tests.long.hosts import NEEDS_HOSTS, Host, Hosts, missing
from tests.long.local_cluster import NAMES, last_lines, nodes, ray_processes, wait_until, write_config

pytestmark = [
    pytest.mark.long,
    pytest.mark.cluster,
    pytest.mark.timeout(1200),
    NEEDS_HOSTS,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
PLAN = {"split.targets": 4, "recipe.epochs": 400}
"""144 jobs, most of half a second: enough that many are left when a host is back."""
ON_CLUSTER = {
    "compute.workers": "auto",
    "compute.address": "auto",
    "compute.head": True,
}
BUCKET = "models"
S3_PORT = 9000
SUBMIT = "orch submit audit apollo ~/plan.yaml --out ~/out"
AGAIN = "orch audit apollo /srv/shared/plan.yaml --out ~/again"


IN_CHECKOUT = "cd /srv/checkout && export PYTHONPATH=/srv/checkout && "
"""Where the file's ``file_mounts`` are: the folder where one is."""


class Story:
    """What is typed and what happens, with the seconds since the beginning."""

    def __init__(self, file: Path, laptop: Host) -> None:
        self.file, self.laptop, self.begun = file, laptop, time.monotonic()

    def note(self, text: str) -> None:
        """Add an event."""
        with self.file.open("a") as file:
            file.write(f"[{time.monotonic() - self.begun:4.0f} s] {text}\n")

    def type(self, line: str) -> str:
        """Run a command on the laptop, which must succeed, and return what it prints."""
        self.note(f"$ {line}")
        done = self.laptop.run(IN_CHECKOUT + line)
        with self.file.open("a") as file:
            file.write(done.stdout)
        assert done.returncode == 0, done.stdout
        return done.stdout


def test_an_audit_on_three_hosts_loses_one_and_has_the_bits_of_one_machine(tmp_path: Path) -> None:
    plan = load_plan("apollo-smoke", values={**PLAN, "compute.workers": 0, "compute.store": str(tmp_path / "alone")})
    audited(plan, tmp_path / "out")
    alone = (tmp_path / "out" / "scores.parquet").read_bytes()

    with Hosts(tmp_path / "hosts", NAMES) as hosts:
        write_config(hosts)
        story, log = Story(tmp_path / "story.log", hosts["laptop"]), tmp_path / "audit.log"
        server = f"{hosts.address('laptop')}:{S3_PORT}"
        start_s3(hosts, tmp_path / "s3.log")
        on_cluster = {**ON_CLUSTER, "compute.store": f"s3://{BUCKET}/store?endpoint_override={server}&scheme=http"}
        for folder in (hosts.shared, hosts.folder / "laptop" / "home"):
            (folder / "plan.yaml").write_text(yaml.safe_dump(plan.changed(on_cluster).resolved()))

        allowed = f" --allow-addresses aws-keys@{server}"

        story.type("ray up --yes ~/local.yaml")
        wait_until(lambda: nodes(hosts) == 3, "three nodes", 120)
        assert "3 local.cluster.node" in story.type('ray exec ~/local.yaml "ray status"')
        told = story.type(f'ray exec ~/local.yaml "orch doctor --cluster /srv/shared/plan.yaml{allowed}"')
        assert told.count(source_digest()) == 3 and "3 nodes, nothing wrong" in told

        story.note("$ ray dashboard ~/local.yaml &")
        forwards = hosts["laptop"].start(IN_CHECKOUT + "ray dashboard ~/local.yaml", tmp_path / "dashboard.log")
        answers = "curl --silent --output /dev/null http://127.0.0.1:8265"
        wait_until(lambda: hosts["laptop"].run(answers).returncode == 0, "the head's dashboard", 60)
        story.note(f"$ {SUBMIT}{allowed}")
        audit = hosts["laptop"].start(IN_CHECKOUT + SUBMIT + allowed, log)
        wait_until(lambda: trained(hosts) >= 4 or audit.poll() is not None, "first models", 240)
        assert audit.poll() is None, last_lines(log)
        before = trained(hosts)
        hosts.down("two")
        story.note(f"{hosts.address('two')} is taken down; {before} models are trained")
        wait_until(lambda: nodes(hosts) == 2, "the loss is noticed", 120)
        story.note("Ray has noticed")
        hosts.up("two")
        story.note(f"{hosts.address('two')} is up again")
        wait_until(lambda: nodes(hosts) == 3, "the host is taken in again", 240)
        story.note("it is a node of the cluster again")

        assert audit.wait(900) == 0, last_lines(log)
        story.note(f"the audit ends:\n{log.read_text(errors='replace')}")
        assert before < trained(hosts)
        assert (hosts.folder / "laptop" / "home" / "out" / "scores.parquet").read_bytes() == alone
        forwards.terminate()

        assert "132 models, 132 reused, 0 to train" in story.type(f'ray exec ~/local.yaml "{AGAIN}{allowed}"')
        assert (hosts.folder / "head" / "home" / "again" / "scores.parquet").read_bytes() == alone

        story.type("ray down --yes ~/local.yaml")
        assert not ray_processes(hosts, "head")
        machines = ("head", "one", "two")  # Ray of the workers misses its head, and ends by itself
        gone = wait_until(lambda: not any(ray_processes(hosts, name) for name in machines), "the end of Ray", 300)
        story.note(f"{gone:.0f} s later no process of Ray is left on any host")


def start_s3(hosts: Hosts, log: Path) -> None:
    """Start an S3 server with an empty bucket on the laptop; it ends with its host."""
    host, address = hosts["laptop"], hosts.address("laptop")
    host.start(f"python -m moto.server --host {address} --port {S3_PORT}", log)
    made = f"curl --silent --fail --request PUT http://{address}:{S3_PORT}/{BUCKET}"
    wait_until(lambda: host.run(made).returncode == 0, "an S3 server", 60)


def trained(hosts: Hosts) -> int:
    """Return how many models the store holds."""
    where = f"http://{hosts.address('laptop')}:{S3_PORT}/{BUCKET}?list-type=2&prefix=store/train/&max-keys=1000"
    listed = hosts["laptop"].run(f"curl --silent '{where}'").stdout
    assert "<IsTruncated>true" not in listed
    return listed.count("/manifest.json<")
