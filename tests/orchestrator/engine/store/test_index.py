"""The index spares listings and is never believed against the store: what is gone is made again or said in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.engine.jobs.job import Job, missing
from orchestrator.engine.store.faults import Missing, StoreUnusable
from orchestrator.engine.store.garbage import collect, find_garbage
from orchestrator.engine.store.index import read_index
from orchestrator.engine.store.known import Known
from orchestrator.engine.store.places import INDEX
from orchestrator.engine.store.store import Store

KEYS = [format(number, "032x") for number in range(6)]


class Counting(Store):
    """A store that counts its listings."""

    listings = 0

    def keys(self, stage: str) -> set[str]:
        self.listings += 1
        return super().keys(stage)


@pytest.fixture
def store(tmp_path: Path) -> Counting:
    store = Counting(tmp_path / "store")
    for key in KEYS[:4]:
        put(store, key)
    return store


def put(store: Store, key: str) -> None:
    store.put("train", key, {}, {"a.json": b"1"})


def job(key: str) -> Job:
    return Job("train", key, (), {}, "plan")


def left(store: Store, keys: list[str]) -> list[str]:
    """What a run has to do."""
    return [each.key for each in missing(map(job, keys), Known(store, ["train", "score"]).stages)]


def indexed(store: Store, keys: list[str]) -> None:
    """A run that does what is missing of ``keys`` and succeeds."""
    known = Known(store, ["train", "score"])
    todo = list(missing(map(job, keys), known.stages))
    for each in todo:
        put(store, each.key)
    known.add(todo)
    known.publish()


def test_a_run_lists_a_stage_once_and_the_next_one_not_at_all(store: Counting) -> None:
    known = Known(store, ["train", "score"])
    for _ in range(3):
        assert [each.key for each in missing(map(job, KEYS), known.stages)] == KEYS[4:]
    assert store.listings == 1
    known.add([job(KEYS[4])])
    assert [each.key for each in missing(map(job, KEYS), known.stages)] == KEYS[5:]
    known.publish()
    assert store.listings == 1
    assert left(store, KEYS[:5]) == []
    assert store.listings == 1
    assert left(store, KEYS) == KEYS[5:]
    assert store.listings == 2


def test_a_run_that_knows_nothing_new_writes_nothing(store: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    indexed(store, KEYS[:4])
    monkeypatch.setattr(store.storage, "publish", pytest.fail)
    indexed(store, KEYS[:3])


@pytest.mark.parametrize("removed_by", ["drop", "run", "gc", "hand"])
def test_what_is_gone_is_missing_again(store: Counting, removed_by: str) -> None:
    indexed(store, KEYS)
    if removed_by == "drop":
        Store(store.uri).drop("train", KEYS[2])
    elif removed_by == "run":
        Known(store, ["train"]).drop("train", KEYS[2])
    elif removed_by == "gc":
        store.record_run("demo", {}, {"train": [key for key in KEYS if key != KEYS[2]]})
        collect(store, find_garbage(store, everything=True))
    else:
        (Path(store.uri) / "train" / KEYS[2][:2] / KEYS[2] / "manifest.json").unlink()
        assert left(store, KEYS) == [], "nobody has looked yet"
        with pytest.raises(Missing, match=r"is not in the store .*; run the same command again") as error:
            Store(store.uri).get("train", KEYS[2])
        assert "\n" not in str(error.value)
    assert not list(Path(store.uri, INDEX).glob("*"))
    assert left(store, KEYS) == [KEYS[2]]


def test_what_a_run_dropped_and_did_not_make_again_is_not_in_its_index(store: Counting) -> None:
    indexed(store, KEYS)
    known = Known(store, ["train"])
    known.drop("train", KEYS[2])
    known.publish()
    assert read_index(store.storage, "train") == {*KEYS} - {KEYS[2]}


def test_a_listing_corrects_the_index(store: Counting) -> None:
    indexed(store, KEYS[:5])
    (Path(store.uri) / "train" / KEYS[2][:2] / KEYS[2] / "manifest.json").unlink()
    known = Known(store, ["train"])
    assert KEYS[5] not in known.stages["train"]
    assert KEYS[2] not in known.stages["train"]


def test_distrust_lists_again(store: Counting) -> None:
    indexed(store, KEYS[:4])
    (Path(store.uri) / "train" / KEYS[2][:2] / KEYS[2] / "manifest.json").unlink()
    known = Known(store, ["train"])
    known.distrust()
    assert KEYS[2] not in known.stages["train"]
    assert read_index(store.storage, "train") == frozenset()


@pytest.mark.parametrize(
    "content", [b"", b"orch.index/1 train 0\n" + KEYS[5].encode(), b"orch.index/1 train 0\n\xff\xfe"]
)
def test_a_damaged_index_counts_as_none(store: Counting, content: bytes) -> None:
    indexed(store, KEYS[:4])
    Path(store.uri, INDEX, "train").write_bytes(content)
    assert left(store, KEYS[5:]) == KEYS[5:]


def test_the_index_is_no_stage_and_no_garbage(store: Counting) -> None:
    indexed(store, KEYS[:4])
    store.record_run("demo", {}, {"train": KEYS[:4]})
    assert store.stages() == ["train"]
    collect(store, find_garbage(store, everything=True))
    assert read_index(store.storage, "train") == {*KEYS[:4]}


def test_a_store_that_takes_no_files_is_read_without_an_index(store: Counting, monkeypatch: Any) -> None:
    def refuse(*_: Any) -> None:
        raise StoreUnusable("no")

    monkeypatch.setattr(store.storage, "publish", refuse)
    monkeypatch.setattr(store.storage, "remove_file", refuse)
    indexed(store, KEYS[:4])
    with pytest.raises(Missing):
        store.get("train", KEYS[5])
