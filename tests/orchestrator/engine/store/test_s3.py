"""The store on S3 (a real server on this machine): the same promises as on a disk."""

from __future__ import annotations

import gzip
import pickle

import pytest

from orchestrator.engine.jobs.keys import artefact_key
from orchestrator.engine.store.claims import Claim
from orchestrator.engine.store.faults import CorruptArtefact, Missing, StoreUnusable
from orchestrator.engine.store.garbage import collect, find_garbage
from orchestrator.engine.store.index import read_index, write_index
from orchestrator.engine.store.owner import Owner
from orchestrator.engine.store.payloads import pack_json
from orchestrator.engine.store.store import Store
from tests.orchestrator.engine.store.s3_server import client, objects, uri

DOCUMENTS = [{"seed": seed} for seed in range(4)]
KEYS = [artefact_key("train", document) for document in DOCUMENTS]
FILES = {"metrics.json": pack_json({"accuracy": 0.5})}


@pytest.fixture
def store(server: str, bucket: str) -> Store:
    return Store(uri(server, bucket))


def test_what_was_put_is_what_is_read(store: Store) -> None:
    for key, document in zip(KEYS, DOCUMENTS, strict=True):
        store.put("train", key, document, FILES, seconds=2.0)
    travelled = pickle.loads(pickle.dumps(store))
    assert travelled.keys("train") == set(KEYS)
    assert travelled.stages() == ["train"]
    assert [artefact.document for artefact in travelled.artefacts("train")] == [
        document for _, document in sorted(zip(KEYS, DOCUMENTS, strict=True))
    ]
    assert travelled.get("train", KEYS[0]).read("metrics.json") == FILES["metrics.json"]


def test_a_file_is_stored_by_one_request(store: Store, server: str, bucket: str) -> None:
    store.put("train", KEYS[0], DOCUMENTS[0], FILES)
    tags = [entry["ETag"] for entry in client(server).list_objects_v2(Bucket=bucket)["Contents"]]
    assert len(tags) == 2
    assert not any("-" in tag for tag in tags), "the tag of an object in several parts ends in their number"


def test_a_dropped_artefact_is_the_one_that_is_missing(store: Store) -> None:
    assert store.keys("train") == set()
    for key, document in zip(KEYS, DOCUMENTS, strict=True):
        store.put("train", key, document, FILES)
    store.drop("train", KEYS[2])
    store.drop("train", "0" * 32)
    assert set(KEYS) - store.keys("train") == {KEYS[2]}
    assert (store.has("train", KEYS[2]), store.has("train", KEYS[1])) == (False, True)
    with pytest.raises(Missing):
        store.get("train", KEYS[2])


def test_an_artefact_without_its_manifest_is_none(store: Store, server: str, bucket: str) -> None:
    store.put("train", KEYS[0], DOCUMENTS[0], FILES)
    client(server).delete_object(Bucket=bucket, Key=f"some/store/train/{KEYS[0][:2]}/{KEYS[0]}/manifest.json")
    assert store.keys("train") == set()
    assert not store.has("train", KEYS[0])


def test_bytes_are_read_as_they_are_whatever_their_file_is_called(store: Store, server: str, bucket: str) -> None:
    packed = gzip.compress(b"{}")
    client(server).put_object(Bucket=bucket, Key="some/store/train/metrics.json.gz", Body=packed)
    assert store.storage.read("train/metrics.json.gz") == packed


def test_changed_bytes_are_damage(store: Store, server: str, bucket: str) -> None:
    store.put("train", KEYS[0], DOCUMENTS[0], FILES)
    (payload,) = (name for name in objects(server, bucket) if "metrics" in name)
    client(server).put_object(Bucket=bucket, Key=payload, Body=b'{"accuracy": 0.6}')
    with pytest.raises(CorruptArtefact, match=rf"train/{KEYS[0]} is damaged: metrics\.json .*--rebuild"):
        store.verify("train", KEYS[0])


@pytest.mark.long
def test_garbage_is_what_no_run_refers_to(store: Store, server: str, bucket: str) -> None:
    """In short: the same of a store on the disk."""
    for key, document in zip(KEYS, DOCUMENTS, strict=True):
        store.put("train", key, document, FILES)
    store.record_run("demo", {}, {"train": KEYS[:2]})
    client(server).put_object(Bucket=bucket, Key=f"some/store/train/00/{'0' * 32}/weights.safetensors", Body=b"half")
    client(server).put_object(Bucket=bucket, Key="somebody/else.txt", Body=b"kept")
    collect(store, find_garbage(store, everything=True))
    assert store.keys("train") == set(KEYS[:2])
    kept = [name.split("/")[-2] for name in objects(server, bucket) if name.startswith("some/store/train")]
    assert sorted(set(kept)) == sorted(KEYS[:2])
    assert "somebody/else.txt" in objects(server, bucket)
    assert [run.name for run in store.runs()] == ["demo"]


def test_a_bucket_that_does_not_exist_is_bad_input_in_one_line_without_the_password(server: str) -> None:
    nowhere = Store(uri(server, "nobodys"))
    with pytest.raises(StoreUnusable, match=r"^store s3://nobodys/some/store cannot be written") as error:
        nowhere.put("train", KEYS[0], DOCUMENTS[0], FILES)
    assert "secret" not in str(error.value) + repr(nowhere)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("many", [1, 1000])
def test_a_listing_finds_the_same_whether_it_goes_shelf_by_shelf_or_not(
    store: Store, server: str, bucket: str, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr("orchestrator.engine.store.object_storage._MANY_SHELVES", many)
    assert store.keys("train") == set()
    for key, document in zip(KEYS, DOCUMENTS, strict=True):
        store.put("train", key, document, FILES)
    client(server).put_object(Bucket=bucket, Key=f"some/store/train/00/{'0' * 32}/weights.safetensors", Body=b"half")
    client(server).put_object(Bucket=bucket, Key="some/store/train/manifest.json", Body=b"astray")
    assert store.keys("train") == set(KEYS)


def test_claims_hold_on_an_object_store(store: Store) -> None:
    other = Store(store.uri)
    one, two = (Owner(name, "another machine", 1, "1", name) for name in ("one", "two"))
    claim = store.claims.take("train", KEYS[0], one)
    assert other.claims.take("train", KEYS[0], two) == one
    assert isinstance(claim, Claim)
    claim.release()
    assert isinstance(other.claims.take("train", KEYS[0], two), Claim)
    assert store.stages() == []


def test_an_index_is_published_and_removed(store: Store) -> None:
    assert read_index(store.storage, "train") == frozenset()
    write_index(store.storage, "train", KEYS)
    assert read_index(store.storage, "train") == set(KEYS)
    store.drop("train", KEYS[0])
    assert read_index(store.storage, "train") == frozenset()
