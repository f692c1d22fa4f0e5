"""A cluster of three nodes on this machine, and an audit on it during which a node is lost.

Run as ``python -m tests.orchestrator.engine.run.three_nodes FOLDER``; the scores are left in FOLDER/out.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from ray.cluster_utils import Cluster

from tests.cases.runs import audited
from tests.orchestrator.engine.run.small_plans import small_plan, trained

NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20}


def main(folder: Path) -> None:
    """Build the cluster, run the audit, take everything down."""
    cluster = Cluster(initialize_head=True, head_node_args={**NODE, "include_dashboard": False})
    try:
        nodes = [cluster.add_node(**NODE) for _ in range(2)]
        cluster.wait_for_nodes()

        def lose_a_node() -> None:
            while trained(folder) < 3:
                over.wait(0.02)
            cluster.remove_node(nodes[0], allow_graceful=False)
            (folder / "lost").touch()

        over = threading.Event()
        threading.Thread(target=lose_a_node, daemon=True).start()
        audited(small_plan("apollo", folder / "store", workers=3, address=cluster.address), folder / "out")
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
