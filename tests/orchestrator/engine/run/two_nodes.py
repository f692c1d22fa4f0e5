"""A cluster of two nodes on this machine, and a command on it during which a node is lost.

Run as ``python -m tests.orchestrator.engine.run.two_nodes FOLDER ARGUMENTS``: ``orch`` with ARGUMENTS, whose store is
FOLDER/store; FOLDER/lost is left when the node is gone. Pages and tracking are left out, and a GPU, which the cluster
has not, is waited for a few seconds only.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from ray.cluster_utils import Cluster

from actors import first_worker
from orchestrator.cli.main import main as orch
from orchestrator.engine.run.run import Run
from tests.cases.runs import UnshownRun
from tests.orchestrator.engine.run.small_plans import trained

NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20}


def main(folder: Path, *arguments: str) -> int:
    """Build the cluster, carry out the command, take everything down; return the command's exit code."""
    before = trained(folder)
    Run.report, Run.watch, Run.track = UnshownRun.report, UnshownRun.watch, UnshownRun.track  # type: ignore[method-assign]
    first_worker.REACTION_SECONDS = 2.0
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        node = cluster.add_node(**NODE)
        cluster.wait_for_nodes()

        def lose_a_node() -> None:
            while trained(folder) < before + 2:
                over.wait(0.02)
            cluster.remove_node(node, allow_graceful=False)
            (folder / "lost").touch()

        over = threading.Event()
        threading.Thread(target=lose_a_node, daemon=True).start()
        joined = [f"compute.address={cluster.address}", "compute.head=true", "compute.workers=2"]
        return orch([*arguments, *(word for value in joined for word in ("--set", value))])
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
