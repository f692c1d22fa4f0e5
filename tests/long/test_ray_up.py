"""``ray up`` with examples/clusters/local.yaml on three hosts: an audit that loses one of them, and has it back."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from orchestrator.kinds import load_plan
from tests.cases.runs import audited
from tests.long.hosts import Hosts, missing
from tests.long.local_cluster import NAMES, last_lines, nodes, ray_processes, wait_until, write_config

pytestmark = [
    pytest.mark.long,
    pytest.mark.cluster,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
PLAN = {"split.targets": 4, "recipe.epochs": 600}
"""144 jobs, most of a second: enough that many are left when a host is back."""


def test_an_audit_on_three_hosts_loses_one_and_has_the_bits_of_one_machine(tmp_path: Path) -> None:
    plan = load_plan("apollo-smoke", values={**PLAN, "compute.workers": 0, "compute.store": str(tmp_path / "alone")})
    audited(plan, tmp_path / "out")
    alone = (tmp_path / "out" / "scores.parquet").read_bytes()

    with Hosts(tmp_path / "hosts", NAMES) as hosts:
        write_config(hosts)
        laptop, log = hosts["laptop"], tmp_path / "log"
        changed = plan.changed({"compute.store": "/srv/shared/store", "compute.workers": 4, "compute.address": "auto"})
        (hosts.shared / "plan.yaml").write_text(yaml.safe_dump(changed.resolved()))

        up = laptop.run("ray up --yes local.yaml")
        assert up.returncode == 0, up.stdout
        wait_until(lambda: nodes(hosts) == 3, "three nodes", 120)

        line = (
            'ray exec local.yaml "set -o pipefail; orch audit apollo /srv/shared/plan.yaml --out /srv/shared/out | cat"'
        )
        audit = laptop.start(line, log)
        wait_until(lambda: trained(hosts) >= 4 or audit.poll() is not None, "first models", 240)
        assert audit.poll() is None, last_lines(log)
        before = trained(hosts)
        hosts.down("two")
        wait_until(lambda: nodes(hosts) == 2, "the loss is noticed", 120)
        assert audit.poll() is None, last_lines(log)
        hosts.up("two")
        wait_until(lambda: nodes(hosts) == 3, "the host is taken in again", 240)

        assert audit.wait(900) == 0, last_lines(log)
        assert before < trained(hosts)
        assert (hosts.shared / "out" / "scores.parquet").read_bytes() == alone

        status = laptop.run('ray exec local.yaml "ray status"')
        assert status.returncode == 0 and "Total Usage" in status.stdout, status.stdout
        down = laptop.run("ray down --yes local.yaml")
        assert down.returncode == 0, down.stdout
        assert not [line for name in ("head", "one", "two") for line in ray_processes(hosts, name)]


def trained(hosts: Hosts) -> int:
    """Return how many models the shared store holds."""
    return len(list((hosts.shared / "store" / "train").glob("*/*/manifest.json")))
