"""How often a run asks its store, and which stores a finished run can be read from."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.store.disk import Disk
from orchestrator.engine.store.faults import Missing, StoreUnusable
from orchestrator.engine.store.store import Store
from orchestrator.kinds import KINDS, kind_named, load_plan
from tests.cases.runs import audited, swept
from tune_spaces.registry import Sweep, fixed

SETTINGS = {"short": {"recipe.epochs": 1}, "shorter": {"recipe.epochs": 2}, "again": {"recipe.epochs": 3}}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register the toy kind."""
    monkeypatch.setitem(KINDS, "toy", "tests.orchestrator.toy.kind:KIND")


@pytest.fixture
def plan(tmp_path: Path) -> BasePlan:
    values = {"compute.workers": 0, "compute.store": str(tmp_path / "store")}
    return load_plan(kind_named("toy").default_plan, values=values)


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Requests of a disk's store by name."""
    counted: Counter[str] = Counter()
    for name in ("folders_with", "publish", "exists"):
        real: Callable[..., Any] = getattr(Disk, name)

        def asked(self: Disk, *arguments: Any, name: str = name, real: Callable[..., Any] = real) -> Any:
            counted[name] += 1
            return real(self, *arguments)

        monkeypatch.setattr(Disk, name, asked)
    return counted


def test_a_sweep_lists_each_stage_once_and_a_warm_one_none(
    plan: BasePlan, tmp_path: Path, requests: Counter[str]
) -> None:
    sweep = Sweep("toy-sweep", "Fewer epochs.", plan, fixed(SETTINGS), "loss.auc", "a table")
    first = swept(sweep, plan, tmp_path / "out")
    assert requests["folders_with"] == len(kind_named("toy").stages)
    requests.clear()
    second = swept(sweep, plan, tmp_path / "out")
    assert requests == Counter(publish=1), "the record of the run, and no listing"
    assert second.scores.equals(first.scores)


def test_a_run_after_an_artefact_is_lost_makes_it_again_or_says_so_in_one_line(plan: BasePlan, tmp_path: Path) -> None:
    first = audited(plan, tmp_path / "out")
    for manifest in (tmp_path / "store").rglob("manifest.json"):
        manifest.unlink()
    with pytest.raises(Missing, match=r"^artefact score/\w+ is not in the store .*; run the same command again$"):
        audited(plan, tmp_path / "out")
    with pytest.raises(Missing, match=r"^artefact train/\w+ is not in the store .*; run the same command again$"):
        audited(plan, tmp_path / "out")
    assert audited(plan, tmp_path / "out").scores.equals(first.scores)


def refuse(*_: Any, **__: Any) -> None:
    raise StoreUnusable("store here cannot be written: Read-only file system; choose another")


def test_a_complete_store_that_takes_no_files_can_be_reported_from(
    plan: BasePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = audited(plan, tmp_path / "out")
    for name in ("publish", "remove_file", "remove_folder"):
        monkeypatch.setattr(Disk, name, refuse)
    capsys.readouterr()
    again = audited(plan, tmp_path / "again")
    assert again.scores.equals(first.scores)
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning: the run is not")]
    assert "Read-only file system" in line
    store = Store(plan.compute.store or "")
    key = next(iter(store.keys("train")))
    (tmp_path / "store" / "train" / key[:2] / key / "manifest.json").unlink()
    (tmp_path / "store" / "index" / "train").unlink()
    with pytest.raises(StoreUnusable, match="Read-only"):
        audited(plan, tmp_path / "again")


def test_two_runs_at_once_on_one_store_make_each_artefact_once(
    plan: BasePlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    real = Store.put

    def put(self: Store, stage: str, key: str, *arguments: Any, **named: Any) -> None:
        made.append(key)
        real(self, stage, key, *arguments, **named)

    monkeypatch.setattr(Store, "put", put)
    results: list[Any] = []
    runs = [
        threading.Thread(target=lambda name=name: results.append(audited(plan, tmp_path / name)))  # type: ignore[misc]
        for name in ("one", "two")
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    one, two = results
    assert one.scores.equals(two.scores)
    assert len(made) == len(set(made)) > 0
    assert not list((tmp_path / "store" / "claims").glob("*"))
