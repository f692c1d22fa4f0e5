"""The runs that faults strike: small plans, what an undisturbed run of them finds, and where their stores lie."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from moto.server import ThreadedMotoServer

from orchestrator.engine.plan.base import BasePlan
from orchestrator.kinds import load_plan
from tests.cases.runs import audited, swept
from tests.cases.smallest_plans import APOLLO
from tests.long.fault_kinds import Scenario
from tests.long.strike import Place
from tests.orchestrator.engine.run.small_plans import SMALL
from tests.orchestrator.engine.store.s3_server import client, proxy_before, uri
from tune_spaces import SWEEPS

PLANS: dict[str, tuple[str, dict[str, Any]]] = {
    "apollo": ("apollo-smoke", {**APOLLO, "split.targets": 2}),
    "tmia": ("tmia-smoke", SMALL["tmia"]),
    "gnq": ("gnq-smoke", {**SMALL["gnq"], "split.pools": 1, "split.shadows": 6}),
    "sweep": ("gnq-smoke", {**SMALL["gnq"], "split.pools": 1, "split.shadows": 6}),
}
SWEEP = "gnq-ridge"
TMPFS_BYTES = 128 * 2**20


def plan_of(work: str, **compute: object) -> BasePlan:
    """Return the plan of a kind of work."""
    base, values = PLANS[work]
    return load_plan(base, values={**values, **{f"compute.{name}": value for name, value in compute.items()}})


def reference(work: str, folder: Path) -> bytes:
    """Return the scores of an undisturbed run in this process."""
    plan = plan_of(work, workers=0, store=str(folder / "store"))
    if work == "sweep":
        swept(SWEEPS[SWEEP], plan, folder / "out")
    else:
        audited(plan, folder / "out")
    return (folder / "out" / "scores.parquet").read_bytes()


@contextlib.contextmanager
def place_for(scenario: Scenario, folder: Path) -> Iterator[Place]:
    """Yield the place of the scenario's store, and of its output."""
    with contextlib.ExitStack() as stack:
        if scenario.place == "s3":
            moto = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
            moto.start()
            stack.callback(moto.stop)
            server = "{}:{}".format(*moto.get_host_and_port())
            client(server).create_bucket(Bucket="faults")
            place = Place(folder, "", uri(server, "faults"))
            proxy = stack.enter_context(proxy_before(server, place.fault))
            place.uri = uri(proxy.place, "faults")
            yield place
            return
        if scenario.place == "tmpfs":
            small = folder / "small"
            small.mkdir()
            subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={TMPFS_BYTES}", "orch-faults", small], check=True)
            stack.callback(lambda: subprocess.run(["umount", "-l", small], check=True))
            folder = small
        yield Place(folder, str(folder / "store"), str(folder / "store"))
