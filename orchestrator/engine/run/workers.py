"""The workers of a run: how many there are, what each holds, and where Ray keeps its own files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from actors.cluster import size_workers
from actors.jobs import Workers

if TYPE_CHECKING:
    from orchestrator.engine.plan.base import BasePlan
    from orchestrator.engine.run.console import Terminal
    from orchestrator.engine.store.store import Store


def workers_of(plan: BasePlan, device: str, store: Store, terminal: Terminal) -> Workers:
    """Return how many workers the plan asks for and where Ray keeps its own files."""
    compute = plan.compute
    gpus = compute.gpus_per_worker or (1.0 if device.startswith("cuda") else 0.0)
    local = store.uri.removeprefix("file://")
    storage = local + ".ray" if "://" not in local else os.path.abspath(".orch/ray")
    count = size_workers(compute.workers, gpus, address=compute.address, storage=storage)
    log = str(terminal.log or "")
    return Workers(count, 1.0, gpus, compute.threads, compute.address, storage, log)
