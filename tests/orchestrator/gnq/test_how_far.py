"""A look at a given model says how far it is whoever does it: this process, or a worker that joined from anywhere."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from orchestrator.engine.run import crew
from orchestrator.engine.run.console import Terminal
from orchestrator.kinds import load_plan
from tests.cases.runs import audited


def shares_printed(place: Path, monkeypatch: pytest.MonkeyPatch, **compute: Any) -> list[int]:
    """Return the shares of looks at members, in percent, that a run prints which prints them as they come."""
    monkeypatch.chdir(place)
    torch.manual_seed(0)
    torch.save(nn.Sequential(nn.Flatten(), nn.Linear(196, 8), nn.ReLU(), nn.Linear(8, 10)).state_dict(), "weights.pt")
    Path("plan.yaml").write_text(
        "audit: {kind: gnq, modes: [ridge], controls: 0}\nmodel: {name: mlp, settings: {hidden: [8]}}\n"
        "target: {weights: weights.pt, members: '0:200'}\n"
    )
    lines: list[str] = []
    monkeypatch.setattr(crew, "Reported", partial(crew.Reported, every=0.0))
    monkeypatch.setattr(Terminal, "line", lambda self, text: lines.append(text))
    few = {"compute.chunk": 1, "compute.device": "cpu", "compute.store": str(place / "store")}  # a point a pass: slow
    audited(
        load_plan("plan.yaml", values=few | {f"compute.{name}": value for name, value in compute.items()}), Path("o")
    )
    return [int(found[1]) for line in lines if (found := re.match(r"look members: \D+ (\d+)%", line))]


def test_in_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shares = shares_printed(tmp_path, monkeypatch, workers=0)
    assert shares and 0 <= shares[0] < 100 and shares == sorted(shares)


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.usefixtures("cluster")
def test_by_a_worker_of_a_cluster_that_was_joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of this process's cluster, whose address is not looked up again; a worker of a Ray Train group says it alike."""
    shares = shares_printed(tmp_path, monkeypatch, workers=1, address="10.0.0.1:6379", head=True)
    assert shares and 0 <= shares[0] < 100 and shares == sorted(shares)
