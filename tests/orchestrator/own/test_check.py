"""``orch check``: contract tests of components of one's own, one line each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.main import main
from tests.cases.own_components import POINTS

BAD = '''
import time
import numpy as np
import torch
from torch import nn
from audits.apollo import Attack, Finding

class Random(nn.Module):
    """Weights from the clock, answers from the batch, one parameter unused."""
    def __init__(self, classes):
        super().__init__()
        self.head = nn.Linear(64, classes)
        self.unused = nn.Parameter(torch.zeros(3))
        with torch.no_grad():
            self.head.bias += time.perf_counter() % 1
    def forward(self, x):
        return self.head(x.flatten(1) - x.flatten(1).mean(0))

def forget(model, forget, retain):
    forget.x.zero_()
    generator = torch.Generator()
    generator.seed()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.rand(parameter.shape, generator=generator))

class Peeks(Attack):
    access = "posteriors"
    reads = ("posteriors",)
    def find(self, evidence):
        seen = evidence.posterior()
        score = np.random.rand(len(seen.labels))
        seen.target[0] = 0
        return Finding(score, score, seen.queries)

def points():
    return np.random.rand(6, 2), np.array([0, 1] * 3)
'''


def failing(name: str, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str]]:
    code = main(["check", name, *words])
    out, err = capsys.readouterr()
    assert not err, err
    lines = out.splitlines()[1:]
    assert all(line.startswith(("  holds  ", "  FAILS  ")) for line in lines) and lines
    return code, [line.removeprefix("  FAILS  ") for line in lines if line.startswith("  FAILS")]


def test_own_components_hold_and_broken_ones_fail_with_what_to_do(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "points.py").write_text(POINTS)
    (folder / "bad.py").write_text(BAD)
    for name, words in (
        ("python:nets:SmallNet", ("--set", "width=8")),
        ("python:points:points", ()),
        ("python:forgetting:forget", ()),
        ("python:attacking:Margin", ()),
        ("mlp", ()),
        ("lira", ()),
    ):
        assert failing(name, capsys, *words) == (0, []), name
    for name, promises in (
        ("python:bad:Random", ("Equal seeds give equal weights", "In eval mode an answer", "Training moves every")),
        ("python:bad:forget", ("The given points stay", "The seed alone decides")),
        ("python:bad:Peeks", ("Every point has a finite score", "Neither the truth nor")),
        ("python:bad:points", ("Read twice it is the same",)),
    ):
        code, lines = failing(name, capsys)
        assert code == 1 and len(lines) == len(promises)
        assert all(any(line.startswith(promise) for line in lines) for promise in promises), lines
        assert all("; " in line for line in lines), "what to do"


def test_what_cannot_be_checked_is_refused_in_a_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "odd.py").write_text("class Odd:\n    pass\n")
    for words, says in (
        (["python:odd:Odd"], "say what it is with --as"),
        (["nothing"], "no component 'nothing' is known"),
        (["python:nets:SmallNet", "--set", "widht=3"], "did you mean 'width'"),
    ):
        assert main(["check", *words]) == 2
        err = capsys.readouterr().err
        assert says in err and len(err.splitlines()) == 1
    assert main(["check", "python:points_absent:points", "--as", "data", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["as"] == "data" and not any(each["holds"] for each in told["checks"])
