"""A cluster of three nodes on this machine: one audit on it, then one during which a node is lost.

Run as ``python tests/three_nodes.py FOLDER``; the scores are left in FOLDER/whole/out and FOLDER/hurt/out.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from ray.cluster_utils import Cluster
from test_determinism import audit, small_plan

from orchestrator.store import Store

MEMORY = 100 * 2**20


def main(folder: Path) -> None:
    """Build the cluster, run both audits, take everything down."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": MEMORY})
    try:
        nodes = [cluster.add_node(num_cpus=1, object_store_memory=MEMORY) for _ in range(2)]
        cluster.wait_for_nodes()
        workers = ("compute.workers=3", f"compute.address={cluster.address}")
        audit(small_plan(folder / "whole" / "store", *workers), folder / "whole" / "out")

        def lose_a_node() -> None:
            hurt = Store(folder / "hurt" / "store")
            while len(hurt.keys("train")) < 3:
                over.wait(0.02)
            cluster.remove_node(nodes[0], allow_graceful=False)
            (folder / "lost").touch()

        over = threading.Event()
        threading.Thread(target=lose_a_node, daemon=True).start()
        audit(small_plan(folder / "hurt" / "store", *workers), folder / "hurt" / "out")
    finally:
        cluster.shutdown()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
