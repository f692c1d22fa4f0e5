"""``orch doctor --cluster``: the nodes of a cluster are asked, and what is wrong is a line with its fix."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from actors.capacity import Node
from actors.jobs import Workers
from actors.nodes import Answer
from orchestrator.cli.cluster_diagnosis import judge, table
from orchestrator.cli.main import main
from orchestrator.cli.node_report import NodeReport, source_digest

SAID = NodeReport(
    python="3.11.7",
    ray="2.60.0",
    torch="2.11",
    code="c0de",
    cpus=4,
    gpus=1,
    free=10**11,
    store="",
    data="da7a",
    data_problem="",
)
ANSWER = Answer(Node("10.0.0.2", 4.0, 1.0), SAID)


@pytest.mark.parametrize(
    ("change", "subject", "found", "fix"),
    [
        ({"python": "3.12.1"}, "python", "3.12.1, the driver has 3.11.7", "same Python"),
        ({"ray": "2.59.0"}, "ray", "2.59.0", "same Ray"),
        ({"torch": ""}, "torch", "not installed, the driver has 2.11", "same torch"),
        ({"code": "01d"}, "orch", "01d, the driver has c0de", "travels with the run"),
        ({"gpus": 0}, "GPUs", "Ray hands out 1, torch finds 0", "CUDA build"),
        ({"gpus": 4}, "GPUs", "torch finds 4, Ray hands out 1", "--num-gpus=4"),
        ({"gpus": None}, "GPUs", "cannot be asked", "install torch"),
        ({"store": "is another place"}, "store", "is another place", "compute.store=s3://"),
        ({"data": "", "data_problem": "no cifar10"}, "data", "no cifar10", "on every node"),
        ({"data": "0ther"}, "data", "another data set than the driver's (0ther, not da7a)", "copy"),
        ({"free": 10**9}, "disk", "1.0 GB free", "free some disk space"),
    ],
)
def test_what_a_node_lacks_is_one_line_with_its_fix(change: dict[str, Any], subject: str, found: str, fix: str) -> None:
    (finding,) = judge(SAID, [ANSWER, replace(ANSWER, said=replace(SAID, **change))])
    assert finding.subject == f"10.0.0.2: {subject}"
    assert found in finding.found and fix in finding.fix
    assert finding.status == ("warn" if subject == "disk" or change == {"gpus": 4} else "FAIL")


@pytest.mark.parametrize(
    ("answer", "status", "found"),
    [
        (replace(ANSWER, skew=-7.0), "warn", "-7.0 s from the driver's"),
        (replace(ANSWER, unreached=("10.0.0.3:8076 (object manager)",)), "FAIL", "no connection to 10.0.0.3:8076"),
        (replace(ANSWER, said=None, problem="no answer within 90 s"), "FAIL", "no answer within 90 s"),
    ],
)
def test_so_is_what_is_wrong_between_nodes(answer: Answer, status: str, found: str) -> None:
    (finding,) = judge(SAID, [ANSWER, answer])
    assert finding.status == status and found in finding.found and finding.fix
    assert len(table([ANSWER, answer]).splitlines()) == 3


@pytest.mark.cluster
def test_the_node_of_a_cluster_is_asked(
    cluster: Workers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of two nodes: ``tests/long/test_doctor.py``."""
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "--cluster", "apollo-smoke", "--store", "store"]) == 0
    header, row, finding = capsys.readouterr().out.splitlines()
    assert header.split()[:3] == ["node", "CPUs", "GPUs"]
    assert source_digest() in row and "(head)" in row and " yes " in row
    assert finding == "ok    cluster: 1 node, nothing wrong"
    assert not [path for path in (tmp_path / "store").rglob("*") if path.is_file()]


def test_plan_and_set_belong_to_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "apollo-smoke"]) == 2
    assert "--cluster" in capsys.readouterr().err
