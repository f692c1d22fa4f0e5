"""The store: an artefact is whole or it is not there, and damage is found, named and never unpickled."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from audits.errors import BadInput
from orchestrator.engine.jobs.keys import artefact_key
from orchestrator.engine.store import disk as storage
from orchestrator.engine.store.faults import CorruptArtefact, Missing, StoreFull, StoreUnusable
from orchestrator.engine.store.payloads import pack_arrays, pack_json, unpack_arrays, unpack_json, unpack_table
from orchestrator.engine.store.store import Store, default_store_uri

DOCUMENT = {"model": {"name": "mlp"}, "recipe": {"epochs": 3}, "seed": 7}
KEY = artefact_key("train", DOCUMENT)
FILES = {"metrics.json": pack_json({"accuracy": 0.5}), "history.json": pack_json([1, 2, 3])}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


def files_of(store: Store) -> list[str]:
    return sorted(path.name for path in Path(store.uri).rglob("*") if path.is_file())


def stored_file(store: Store, start: str) -> Path:
    (path,) = (path for path in Path(store.uri).rglob("*.*") if path.name.startswith(start))
    return path


def python(code: str, *arguments: str) -> subprocess.Popen[bytes]:
    root = str(Path(__file__).parents[4])
    return subprocess.Popen([sys.executable, "-c", code, *arguments], cwd=root, stderr=subprocess.PIPE)


def test_what_was_put_is_what_is_read(store: Store) -> None:
    store.put("train", KEY, DOCUMENT, FILES, seconds=1.5)
    artefact = store.get("train", KEY)
    assert {name: artefact.read(name) for name in artefact.files} == FILES
    assert (artefact.document, artefact.seconds, artefact.size) == (DOCUMENT, 1.5, sum(map(len, FILES.values())))
    assert store.has("train", KEY)
    assert store.keys("train") == {KEY}
    assert [found.key for found in store.artefacts()] == [KEY]
    store.verify("train", KEY)


def test_an_artefact_lies_under_its_stage_and_the_start_of_its_key(store: Store) -> None:
    store.put("train", KEY, DOCUMENT, FILES)
    assert (Path(store.uri) / "train" / KEY[:2] / KEY / "manifest.json").is_file()


def test_only_the_missing_one_of_many_is_missing(store: Store) -> None:
    documents = [DOCUMENT | {"seed": seed} for seed in range(12)]
    keys = [artefact_key("train", document) for document in documents]
    for key, document in zip(keys, documents, strict=True):
        store.put("train", key, document, FILES)
    store.drop("train", keys[5])
    assert set(keys) - store.keys("train") == {keys[5]}
    assert not store.has("train", keys[5])
    with pytest.raises(Missing, match=keys[5]):
        store.get("train", keys[5])


def test_a_fresh_store_is_empty_and_looking_at_it_creates_nothing(store: Store) -> None:
    assert store.keys("train") == set()
    assert list(store.artefacts()) == store.stages() == store.runs() == []
    store.drop("train", KEY)
    assert not Path(store.uri).exists()


def test_a_folder_alone_is_no_artefact(store: Store) -> None:
    (Path(store.uri) / "train" / KEY[:2] / KEY).mkdir(parents=True)
    assert store.keys("train") == set()
    assert not store.has("train", KEY)


KILLED = """
import os, signal, sys
from orchestrator.engine.store import disk as storage
from orchestrator.engine.jobs.keys import artefact_key
from orchestrator.engine.store.payloads import pack_json
from orchestrator.engine.store.store import Store
uri, function, survived = sys.argv[1], sys.argv[2], int(sys.argv[3])
real, calls = getattr(os, function), []
def fatal(*arguments, **named):
    if len(calls) == survived:
        os.kill(os.getpid(), signal.SIGKILL)
    calls.append(arguments)
    return real(*arguments, **named)
setattr(os, function, fatal)
document = {"model": {"name": "mlp"}, "recipe": {"epochs": 3}, "seed": 7}
files = {"metrics.json": pack_json({"accuracy": 0.5}), "history.json": pack_json([1, 2, 3])}
Store(uri).put("train", artefact_key("train", document), document, files)
"""


@pytest.mark.parametrize(
    ("function", "survived"), [("write", 0), ("write", 1), ("fsync", 2), ("replace", 0), ("replace", 1), ("replace", 2)]
)
def test_a_put_killed_in_the_middle_leaves_no_artefact(store: Store, function: str, survived: int) -> None:
    process = python(KILLED, store.uri, function, str(survived))
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert any(name.startswith(storage.TEMPORARY) for name in files_of(store))
    assert store.keys("train") == set()
    assert not store.has("train", KEY)
    store.put("train", KEY, DOCUMENT, FILES)
    store.verify("train", KEY)


def test_a_put_that_survives_the_hook_is_whole(store: Store) -> None:
    process = python(KILLED, store.uri, "replace", "3")
    process.communicate()
    assert process.returncode == 0
    store.verify("train", KEY)


PUTS = """
import sys
from orchestrator.engine.store.payloads import pack_json
from orchestrator.engine.store.store import Store
for turn in range(40):
    Store(sys.argv[1]).put("train", sys.argv[2], {"seed": 7}, {"a.json": pack_json([sys.argv[3], turn] * 500),
                                                              "b.json": pack_json([turn, sys.argv[3]])})
"""


@pytest.mark.long
def test_two_processes_may_put_one_key_at_once(store: Store) -> None:
    """In short: ``test_writers_and_removers_of_one_folder_do_not_disturb_each_other``."""
    store.put("train", KEY, DOCUMENT, FILES)
    with python(PUTS, store.uri, KEY, "one") as one, python(PUTS, store.uri, KEY, "two") as two:
        while one.poll() is None or two.poll() is None:
            store.verify("train", KEY)
        assert (one.communicate()[1], two.communicate()[1]) == (b"", b"")
    artefact = store.get("train", KEY)
    a, b = (artefact.read(name).decode() for name in ("a.json", "b.json"))
    assert ("one" in a) == ("one" in b)


def test_a_put_works_although_somebody_removes_the_empty_folder(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real, calls = storage.os.open, []

    def removed_first(path: str | Path, flags: int, *rest: int, **named: int) -> int:
        if not calls and flags & os.O_CREAT:
            calls.append(path)
            (Path(store.uri) / "train" / KEY[:2] / KEY).rmdir()
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(storage.os, "open", removed_first)
    store.put("train", KEY, DOCUMENT, FILES)
    store.verify("train", KEY)


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"null", b'{"schema": "orch.artefact/1"', b"\x80\x04N."])
def test_an_empty_or_garbled_manifest_is_damage(store: Store, content: bytes) -> None:
    store.put("train", KEY, DOCUMENT, FILES)
    stored_file(store, "manifest").write_bytes(content)
    with pytest.raises(
        CorruptArtefact, match=rf"^artefact train/{KEY} is damaged: manifest\.json .*--rebuild"
    ) as error:
        store.get("train", KEY)
    assert "\n" not in str(error.value)


def test_a_changed_setting_in_a_manifest_is_damage(store: Store) -> None:
    store.put("train", KEY, DOCUMENT, FILES)
    manifest = stored_file(store, "manifest")
    manifest.write_text(manifest.read_text().replace('"epochs": 3', '"epochs": 4'))
    with pytest.raises(CorruptArtefact, match="checksum"):
        store.get("train", KEY)


def test_an_artefact_copied_under_another_key_is_damage(store: Store) -> None:
    store.put("train", KEY, DOCUMENT, FILES)
    other = KEY[:2] + "0" * 30
    stored_file(store, "manifest").parent.rename(Path(store.uri) / "train" / KEY[:2] / other)
    with pytest.raises(CorruptArtefact, match=f"belongs to the artefact train/{KEY}"):
        store.get("train", other)


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "empty"])
def test_a_changed_payload_is_damage(store: Store, damage: str) -> None:
    store.put("train", KEY, DOCUMENT, FILES)
    payload = stored_file(store, "metrics")
    data = payload.read_bytes()
    if damage == "remove":
        payload.unlink()
    else:
        changed = {"flip": data[:5] + bytes([data[5] ^ 1]) + data[6:], "cut": data[:-1], "empty": b""}
        payload.write_bytes(changed[damage])
    with pytest.raises(CorruptArtefact, match=rf"^artefact train/{KEY} is damaged: metrics\.json .*--rebuild"):
        store.verify("train", KEY)
    with pytest.raises(CorruptArtefact, match="metrics"):
        store.get("train", KEY).read("metrics.json")
    store.put("train", KEY, DOCUMENT, FILES)
    store.verify("train", KEY)


class Bomb:
    """Unpickling this creates the file that it names."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return (open, (self.path, "w"))


def test_a_pickle_under_the_name_of_weights_is_never_loaded(store: Store, tmp_path: Path) -> None:
    bomb = pickle.dumps(Bomb(str(tmp_path / "exploded")))
    store.put("train", KEY, DOCUMENT, {"weights.safetensors": pack_arrays({})})
    stored_file(store, "weights").write_bytes(bomb)
    with pytest.raises(CorruptArtefact, match=r"weights\.safetensors"):
        store.get("train", KEY).read("weights.safetensors")
    for unpack in (unpack_arrays, unpack_table, unpack_json):
        with pytest.raises(CorruptArtefact, match="--rebuild"):
            unpack(bomb)
    for name in ("weights.safetensors", "scores.parquet", "metrics.json", "weights.pt", "weights.pkl"):
        with pytest.raises(ValueError, match=r"weights|scores|metrics"):
            store.put("train", "f" * 32, DOCUMENT, {name: bomb})
    assert store.keys("train") == {KEY}
    assert not (tmp_path / "exploded").exists()


def test_a_pickle_with_a_matching_checksum_is_still_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("orchestrator.engine.store.store.wrong_format", lambda name, data: None)
        store.put("train", KEY, DOCUMENT, {"weights.safetensors": pickle.dumps([1, 2])})
    with pytest.raises(CorruptArtefact, match="is not safetensors"):
        store.get("train", KEY).read("weights.safetensors")


@pytest.mark.parametrize("survived", [0, 1, 2])
@pytest.mark.parametrize("function", ["write", "fsync"])
def test_a_full_disk_leaves_no_half_artefact(
    store: Store, monkeypatch: pytest.MonkeyPatch, function: str, survived: int
) -> None:
    store.put("train", "0" * 32, DOCUMENT, FILES)
    before = files_of(store)
    real, calls = getattr(storage.os, function), []

    def full(*arguments: object) -> object:
        calls.append(arguments)
        if len(calls) > survived:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(storage.os, function, full)
        with pytest.raises(StoreFull) as error:
            store.put("train", KEY, DOCUMENT, FILES)
    assert str(error.value).startswith("disk full")
    assert "nothing finished is lost; free space and run the same command again" in str(error.value)
    assert "\n" not in str(error.value)
    assert files_of(store) == before
    assert store.keys("train") == {"0" * 32}
    store.put("train", KEY, DOCUMENT, FILES)
    store.verify("train", KEY)


def test_a_write_cut_short_by_the_system_is_continued(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real = storage.os.write
    monkeypatch.setattr(storage.os, "write", lambda handle, data: real(handle, data[:7]))
    store.put("train", KEY, DOCUMENT, FILES)
    store.verify("train", KEY)


def test_a_store_below_a_file_is_bad_input_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "store")
    with pytest.raises(
        BadInput, match=r"^store .*file/store cannot be written: Not a directory; choose .*--store"
    ) as error:
        store.put("train", KEY, DOCUMENT, FILES)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.EPERM])
def test_a_store_without_permission_is_bad_input(store: Store, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    def refuse(*_arguments: object, **_options: object) -> None:
        raise OSError(code, "no")

    monkeypatch.setattr(storage.os, "mkdir", refuse)
    with pytest.raises(StoreUnusable, match="cannot be written"):
        store.put("train", KEY, DOCUMENT, FILES)


def test_an_unknown_kind_of_place_is_bad_input() -> None:
    with pytest.raises(StoreUnusable, match=r"^store nope://\*\*\*@there cannot be opened: .*s3://bucket/folder"):
        Store("nope://user:secret@there").keys("train")
    for uri in ("s3://", "s3:///folder", "gs://user@/folder"):
        with pytest.raises(StoreUnusable, match="it names no bucket"):
            Store(uri).keys("train")


def test_a_store_travels_to_workers_and_to_other_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store("mine")
    store.put("train", KEY, DOCUMENT, FILES)
    travelled = pickle.loads(pickle.dumps(store))
    monkeypatch.chdir("/")
    assert travelled.keys("train") == {KEY}


def test_a_file_uri_is_the_folder_that_it_names(tmp_path: Path) -> None:
    Store((tmp_path / "a store").as_uri()).put("train", KEY, DOCUMENT, FILES)
    assert Store(tmp_path / "a store").keys("train") == {KEY}


def test_the_default_store_is_the_environments_or_below_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORCH_STORE", raising=False)
    assert default_store_uri() == str(tmp_path / ".orch" / "store")
    monkeypatch.setenv("ORCH_STORE", "s3://bucket/store")
    assert default_store_uri() == "s3://bucket/store"


def test_a_run_recorded_again_replaces_its_record(store: Store) -> None:
    first = store.record_run("demo", {"seed": 1}, {"train": ["b", "a", "a"]})
    assert store.record_run("demo", {"seed": 1}, {"train": ["c"], "score": ["d"]}) == first
    other = store.record_run("demo", {"seed": 2}, {})
    assert {run.id: run.keys for run in store.runs()} == {first: {"train": ["c"], "score": ["d"]}, other: {}}
    assert store.stages() == []


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".tmp-x"])
def test_stages_and_keys_cannot_leave_their_folder(store: Store, name: str) -> None:
    with pytest.raises(ValueError, match="cannot be a stage or a key"):
        store.put(name, KEY, DOCUMENT, FILES)
    with pytest.raises(ValueError, match="cannot be a stage or a key"):
        store.put("train", name, DOCUMENT, FILES)


@pytest.mark.parametrize("rounds", [60, pytest.param(300, marks=pytest.mark.long)])
def test_writers_and_removers_of_one_folder_do_not_disturb_each_other(tmp_path: Path, rounds: int) -> None:
    """The last file that goes takes the folder with it, in the midst of others' writing."""
    disk = storage.Disk(str(tmp_path))
    failures: list[BaseException] = []

    def come_and_go(name: str) -> None:
        for _ in range(rounds):
            try:
                disk.publish("claims", {name: b"{}"})
                disk.remove_file(f"claims/{name}")
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=come_and_go, args=(f"{number}.json",)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
