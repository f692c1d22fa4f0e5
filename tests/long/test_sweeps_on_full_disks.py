"""Sweeps, searches and choices whose disk fills in their midst: one line, nothing damaged, the same command goes on."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.engine.run import run, selecting
from orchestrator.engine.store.store import Store
from orchestrator.kinds import KINDS
from tests.cases.runs import UnshownRun
from tests.orchestrator.apollo.test_pipeline import TINY

TOY = Path(__file__).parents[1] / "orchestrator" / "toy" / "toy.yaml"
SEARCH = """\
base: {plan}
space: {{recipe.learning_rate: {{loguniform: [0.0005, 0.05]}}, recipe.epochs: [1, 4]}}
samples: 12
search: optuna
scheduler: {{asha: {{grace: 1, reduction: 2}}}}
metric: loss.auc
"""
GRID = "{{base: {plan}, space: {{recipe.epochs: [1, 2, 3]}}}}"
METRIC = ("--metric", "gradient_ascent.apollo.auc")
SET = tuple(word for each in (*TINY, "audit.attacks=[apollo]", "split.shadows=8") for word in ("--set", each))
COMMANDS: dict[str, tuple[str, ...]] = {
    "sweep": ("sweep", "grid.yaml"),
    "vary": ("sweep", "--vary", "recipe.epochs=1,2,3", str(TOY)),
    "search": ("sweep", "search.yaml"),
    "tune": ("tune", "apollo", "--vary", "audit.search.epsilon=0.02,0.5", "apollo-smoke", *METRIC, *SET),
}

pytestmark = [
    pytest.mark.long,
    pytest.mark.needs("mount", "umount"),
    pytest.mark.skipif(os.geteuid() != 0, reason="a small file system is mounted, which root may"),
]


@pytest.fixture(autouse=True)
def unshown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Know the toy kind; draw no page and track nothing."""

    class UnshownSelecting(UnshownRun, selecting.Selecting):
        pass

    monkeypatch.setitem(KINDS, "toy", "tests.orchestrator.toy.kind:KIND")
    monkeypatch.setattr(run, "Run", UnshownRun)
    monkeypatch.setattr(selecting, "Selecting", UnshownSelecting)
    monkeypatch.chdir(tmp_path)
    Path("search.yaml").write_text(SEARCH.format(plan=TOY))
    Path("grid.yaml").write_text(GRID.format(plan=TOY))


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system of eight megabytes."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "orch-full", folder], check=True)
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path) -> None:
    """Write a file until there is no space left in ``folder``."""
    with (folder / "filler").open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(b"x" * 4096):
            pass


def command(name: str, place: Path, out: Path) -> int:
    return main([*COMMANDS[name], "--workers", "0", "--store", str(place / "store"), "--out", str(out)])


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("full", ["store", "out"])
def test_a_full_disk_costs_one_line_and_the_same_command_goes_on(
    name: str, full: str, tmp_path: Path, small: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    first = tmp_path / "first"
    assert command(name, first, first / "out") == 0
    store, out = (small, tmp_path / "out") if full == "store" else (tmp_path, small / "out")
    put, made, full_at = Store.put, Counter[tuple[str, str]](), 8

    def counted(self: Store, stage: str, key: str, *rest: Any, **named: Any) -> None:
        if made.total() == full_at:
            fill(small)
        put(self, stage, key, *rest, **named)
        made[stage, key] += 1

    monkeypatch.setattr(Store, "put", counted)
    capsys.readouterr()
    for _ in range(2):  # it is still full when the command is given again
        assert command(name, store, out) == 3
        said = capsys.readouterr().err
        assert said.startswith("orch: disk full") and said.count("\n") == 1 and "run the same command again" in said
        full_at = -1
    (small / "filler").unlink()
    assert command(name, store, out) == 0
    assert set(made.values()) == {1}, "what was finished is not made again"
    kept = [place / "store" for place in (first, store)]
    assert {stage: Store(kept[0]).keys(stage) for stage, _ in made} == {
        stage: Store(kept[1]).keys(stage) for stage, _ in made
    }
    for file in ("scores.parquet", "plan.yaml"):
        wanted = (first / "out" / file).read_text("latin-1").replace(str(first), "")
        assert (out / file).read_text("latin-1").replace(str(store), "") == wanted
    assert command(name, store, out) == 0 and set(made.values()) == {1}
