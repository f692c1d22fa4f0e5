"""``orch validate`` refuses what ``orch audit`` refuses before its first job, in the same words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from audits.models.base import make_model
from orchestrator.cli.main import main
from orchestrator.engine.run.crew import Crew

SMALL = (
    "audit.fpr=[0.4]",
    "audit.attacks=[loss, lira]",
    "audit.judge=lira",
    "data.name=npz:d.npz",
    "model={name: mlp}",
)
ONE = "split={train_size: 60, shadows: 8, test: 60}"
TWO = "split={pools: 2, train_size: 60, test: 60, null_models: 2}"
GIVEN = (*SMALL, ONE, "target.weights=w.pt")


class WorkBegins(Exception):
    """An audit has found nothing to refuse."""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with data of 400 points and lists of them; no audit in it gets to its work."""
    monkeypatch.chdir(tmp_path)
    labels = np.arange(400) % 4
    np.savez("d.npz", inputs=np.random.default_rng(0).normal(size=(400, 8)).astype("f4"), labels=labels)
    Path("groups.csv").write_text("id,group\n" + "".join(f"{i},{min(i // 300, 1)}\n" for i in range(400)))
    Path("short.csv").write_text("id,group\n1,a\n")
    Path("twice.txt").write_text("1\n2\n1\n")
    Path("outside.csv").write_text("id\n1\n400\n")
    Path("labelled.csv").write_text("id,label\n1,0\n2,1\n")

    torch.save(make_model("mlp", {}).build((8,), 4, 0).state_dict(), "w.pt")

    def begin(*_: object) -> None:
        raise WorkBegins

    monkeypatch.setattr(Crew, "prepare", begin)
    return tmp_path


def lines(capsys: pytest.CaptureFixture[str], command: Sequence[str], changes: Sequence[str]) -> set[str]:
    """Return the lines by which a command refuses a plan, of which an audit shows the first; empty if it does not."""
    found = main([*command, "mia-smoke", *(f"--set={each}" for each in ("compute.workers=0", *changes))])
    said = {line for line in capsys.readouterr().err.splitlines() if line.startswith("orch: ")}
    return {re.sub(r" \(\+\d+ more\)$", "", line) for line in said} if found == 2 else set()


@pytest.mark.parametrize(
    ("named", "changes"),
    [
        ("gone.npz", ("data.name=npz:gone.npz",)),
        ("train_size", ("data.name=npz:d.npz", "split.train_size=1000")),
        ("300 points", (*SMALL, TWO, "data.groups=groups.csv")),
        ("'short.csv'", (*SMALL, TWO, "data.groups=short.csv")),
        ("id 1 twice", (*GIVEN, "target.members=twice.txt")),
        ("id 400", (*GIVEN, "target.members=outside.csv")),
        ("label", (*GIVEN, "target.members=labelled.csv")),
        ("0:500", (*GIVEN, "target.members=0:500")),
        ("10 points", (*GIVEN, "target.members=0:150", "target.non_members=140:300")),
        ("7.weight", (*GIVEN, "target.members=0:80", "model={name: mlp, settings: {hidden: [9, 9, 9, 9]}}")),
        ("file store", ("tracking.uri=./mlruns",)),
        ("http://localhost:5000", ("tracking.uri=localhost:5000",)),
    ],
)
def test_what_an_audit_refuses_before_its_work_validate_refuses(
    capsys: pytest.CaptureFixture[str], named: str, changes: tuple[str, ...]
) -> None:
    (wanted,) = lines(capsys, ["audit", "mia", "--out", "o"], changes)
    assert named in wanted
    assert wanted in lines(capsys, ["validate"], changes)


def test_what_validate_takes_an_audit_begins() -> None:
    changes = [f"--set={each}" for each in (*SMALL, TWO)]
    assert main(["validate", "mia-smoke", *changes]) == 0
    assert main(["audit", "mia", "mia-smoke", "--out", "o", "--set=compute.workers=0", *changes]) == 3
