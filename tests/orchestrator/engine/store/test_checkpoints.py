"""Checkpoints in a store: whole or passed over, replaced by newer ones, removed when they are needless, never fatal."""

from __future__ import annotations

import errno
import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from audits.training.keeper import Snapshot
from orchestrator.engine.store import disk
from orchestrator.engine.store.checkpoints import JobKeeper, unfinished
from orchestrator.engine.store.garbage import GRACE, collect, find_garbage
from orchestrator.engine.store.payloads import pack_json
from orchestrator.engine.store.store import Store

KEY, OTHER = "a" * 32, "b" * 32


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


def snapshot(value: float) -> Snapshot:
    shared = torch.full((2, 3), value)
    return Snapshot({"model/w": shared, "model/tied": shared, "step": torch.tensor(3)}, {"at": [1, 0.1], "none": None})


def value(found: Snapshot | None) -> float | None:
    return None if found is None else float(found.tensors["model/w"][0, 0])


def kept(store: Store, key: str = KEY, minutes: float = 10, clock: Callable[[], float] = time.monotonic) -> JobKeeper:
    return JobKeeper(store, "train", key, minutes, clock)


def files(store: Store) -> list[Path]:
    return sorted(path for path in (Path(store.uri) / "checkpoints").rglob("*") if path.is_file())


def test_what_was_kept_is_what_another_worker_finds_and_an_older_one_is_gone(store: Store) -> None:
    first = kept(store)
    assert first.last() is None
    first.save(snapshot(1))
    first.save(snapshot(2))
    assert len(files(store)) == 1
    found = kept(store).last()
    assert value(found) == 2 and found is not None
    assert found.notes == snapshot(2).notes
    assert found.tensors.keys() == snapshot(2).tensors.keys()
    assert kept(store, OTHER).last() is None


def test_one_is_due_every_so_many_minutes_of_the_clock(store: Store) -> None:
    now = [100.0]
    keeper = kept(store, minutes=2, clock=lambda: now[0])
    assert not keeper.due()
    now[0] = 219.0
    assert not keeper.due()
    now[0] = 220.0
    assert keeper.due()
    keeper.save(snapshot(1))
    assert not keeper.due()


def test_the_seconds_of_work_are_those_of_all_who_went_on_from_each_other(store: Store) -> None:
    now = [100.0]
    first = kept(store, clock=lambda: now[0])
    assert first.last() is None and first.spent == 0
    now[0] = 130.0
    first.save(snapshot(1))
    now[0] = 500.0  # lost, and found some time later
    second = kept(store, clock=lambda: now[0])
    second.last()
    assert second.spent == 30
    now[0] = 505.0
    second.save(snapshot(2))
    third = kept(store)
    third.last()
    assert third.spent == 35


def test_jobs_with_a_checkpoint_are_unfinished(store: Store) -> None:
    assert unfinished(store) == set()
    kept(store).save(snapshot(1))
    kept(store, OTHER).save(snapshot(1))
    half = Path(store.storage.place) / "checkpoints" / f"train.{'f' * 32}" / f".tmp-1-{'0' * 64}.safetensors"
    half.parent.mkdir()
    half.write_bytes(b"")  # its process was lost while it wrote
    assert unfinished(store) == {("train", KEY), ("train", OTHER)}
    other = kept(store, OTHER)
    other.last()
    other.remove()
    assert unfinished(store) == {("train", KEY)}


@pytest.mark.parametrize("damage", ["cut", "changed", "foreign", "no tensors"])
def test_a_damaged_or_foreign_one_is_passed_over_with_a_line(
    store: Store, caplog: pytest.LogCaptureFixture, damage: str
) -> None:
    kept(store).save(snapshot(1))
    (file,) = files(store)
    if damage == "foreign":
        kept(store, OTHER).save(snapshot(2))
        (theirs,) = (each for each in files(store) if OTHER in str(each))
        theirs.rename(file.parent / theirs.name)
        file.unlink()
    else:
        data = file.read_bytes()
        file.write_bytes({"cut": data[:-1], "changed": data[:-1] + b"\x07", "no tensors": b""}[damage])
    keeper = kept(store)
    assert keeper.last() is None
    (line,) = caplog.messages
    assert f"train.{KEY}" in line and "is passed over" in line
    keeper.save(snapshot(3))
    assert value(kept(store).last()) == 3
    assert len(files(store)) == 1


def test_of_two_the_whole_one_is_taken(store: Store) -> None:
    one, two = kept(store), kept(store)
    one.save(snapshot(1))
    (older,) = files(store)
    two.save(snapshot(2))
    (newer,) = (each for each in files(store) if each != older)
    newer.write_bytes(b"half")
    assert value(kept(store).last()) == 1


def test_a_full_disk_costs_a_line_and_not_the_training(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    keeper = kept(store, minutes=1, clock=lambda: now[0])
    keeper.save(snapshot(1))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, caplog.at_level(logging.WARNING):
        patch.setattr(disk.os, "write", full)
        now[0] = 60.0
        keeper.save(snapshot(2))
    (line,) = caplog.messages
    assert "its training goes on" in line and "disk full" in line and "\n" not in line
    assert value(kept(store).last()) == 1
    assert not keeper.due()  # it is not tried again at every step
    now[0] = 120.0
    assert keeper.due()
    keeper.save(snapshot(3))
    assert value(kept(store).last()) == 3


def test_the_keeper_of_a_finished_job_leaves_nothing(store: Store) -> None:
    kept(store).save(snapshot(1))
    other = kept(store)
    other.last()
    other.save(snapshot(2))
    other.remove()
    assert not (Path(store.uri) / "checkpoints").exists()


def test_garbage_is_what_no_run_waits_for(store: Store) -> None:
    store.record_run("audit", {"a": 1}, {"train": [KEY, "c" * 32]})
    for key in (KEY, OTHER, "c" * 32):
        kept(store, key).save(snapshot(1))
    store.put("train", "c" * 32, {}, {"metrics.json": pack_json(1)})
    now = time.time()
    assert find_garbage(store, now=now).leftovers == []  # it may be somebody's work
    garbage = find_garbage(store, now=now + GRACE)
    assert {entry.path.split("/")[1] for entry in garbage.leftovers} == {f"train.{OTHER}", f"train.{'c' * 32}"}
    assert len(find_garbage(store, now=now, everything=True).leftovers) == 2
    collect(store, garbage)
    assert [path.parent.name for path in files(store)] == [f"train.{KEY}"]
    assert store.stages() == ["train"]
