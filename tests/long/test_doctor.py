"""``orch doctor --cluster`` on a cluster of two nodes, one of which claims a GPU that is not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from orchestrator.cli.node_report import source_digest
from tests.long.hosts import ROOT

pytestmark = [
    pytest.mark.long,
    pytest.mark.cluster,
    pytest.mark.skipif(torch.cuda.is_available(), reason="the second node's GPU would be there"),
]
SCRIPT = """
import json, sys
from ray.cluster_utils import Cluster
from orchestrator.cli.main import main

node = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
try:
    cluster.add_node(**node, num_gpus=1)
    cluster.wait_for_nodes()
    for words in json.loads(sys.argv[1]):
        words = [word.replace("HERE", cluster.address) for word in words]
        print("exit code", main(["doctor", "--cluster", *words]), flush=True)
finally:
    cluster.shutdown()
"""
HERE = ("--set", "compute.address=HERE")


def test_every_node_of_a_cluster_is_asked(tmp_path: Path) -> None:
    absent = ("--json", "--set", "data.name=cifar10", "--set", f"data.root={tmp_path}")
    calls = [
        ["apollo-smoke", "--store", "store", *HERE],
        [*absent, "--store", "store", *HERE],
        ["--set", "compute.address=127.0.0.1:1024"],
    ]
    command = [sys.executable, "-c", SCRIPT, json.dumps(calls)]
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "env": {**os.environ, "PYTHONPATH": str(ROOT)}}
    said = subprocess.run(command, cwd=tmp_path, text=True, check=True, **both).stdout  # type: ignore[call-overload]
    first, second, third, _ = said.split("exit code ")
    header, *lines = first.splitlines()
    assert header.split()[:3] == ["node", "CPUs", "GPUs"]
    rows, findings = lines[:2], lines[2:]
    assert all(source_digest() in row and " yes " in row for row in rows)
    assert len([row for row in rows if "(head)" in row]) == 1
    assert len(findings) == 2 and findings[1].startswith(" ")  # one finding, wrapped
    assert "Ray hands out 1, torch finds 0" in findings[0]
    code, document = second.splitlines()
    assert code == "3"
    subjects = [finding["subject"].partition(": ")[2] for finding in json.loads(document)]
    assert subjects.count("data") == 3  # the driver and two nodes
    assert "no Ray cluster answers" in third
    assert said.splitlines()[-1] == "exit code 2"
    assert not [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
