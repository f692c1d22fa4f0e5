"""A store that somebody else has filled: nothing in it leads outside of it, and what would is refused in one line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.diagnosis import store_place
from orchestrator.cli.main import BAD_INPUT, main
from orchestrator.engine.jobs.keys import artefact_key
from orchestrator.engine.store.faults import CorruptArtefact
from orchestrator.engine.store.garbage import find_garbage
from orchestrator.engine.store.manifest import sealed
from orchestrator.engine.store.owner import this_process
from orchestrator.engine.store.paths import require_inside
from orchestrator.engine.store.payloads import pack_json, unpack_json, wrong_format
from orchestrator.engine.store.store import Store
from tests.orchestrator.engine.store.refusals import refused
from tests.orchestrator.engine.store.s3_server import client, uri

DOCUMENT = {"seed": 7}
KEY = artefact_key("score", DOCUMENT)
FILES = {"metrics.json": pack_json({"accuracy": 0.5})}
SECRET = pack_json({"password": "hunter2"})
LEADING_OUT = [
    "../../../../secret.json", "..", ".", "", "/etc/secret.json", "a/b.json", "./metrics.json", "..\\secret.json",
    "a\\b.json", "metrics.json\0", "metrics\n.json", ".hidden.json", "a//b.json",
]  # fmt: skip


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder beside the store with a file that is not the store's."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.json").write_bytes(SECRET)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    found = Store(str(tmp_path / "store"))
    found.put("score", KEY, DOCUMENT, FILES)
    return found


def folder_of(store: Store) -> Path:
    return Path(store.uri) / "score" / KEY[:2] / KEY


def rewritten(data: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    """Return a manifest after ``change``, with the checksum that its new content has."""
    body = json.loads(data)
    del body["sha256"]
    change(body)
    return sealed(body)


def plant(store: Store, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the stored manifest so that its checksum is right again."""
    file = folder_of(store) / "manifest.json"
    file.write_bytes(rewritten(file.read_bytes(), change))


def at_path(path: object) -> Callable[[dict[str, Any]], object]:
    return lambda body: body["files"]["metrics.json"].update(path=path)


@pytest.mark.parametrize("path", LEADING_OUT)
def test_a_manifest_names_files_of_its_own_folder_only(store: Store, path: str) -> None:
    plant(store, at_path(path))
    text = refused(lambda: store.get("score", KEY))
    assert f"score/{KEY}" in text
    assert repr(path) in text
    refused(lambda: store.verify("score", KEY))
    refused(lambda: list(store.artefacts(on_damage=lambda *_: None)))
    refused(lambda: find_garbage(store))


@pytest.mark.long
@pytest.mark.parametrize("path", ["../../../../../outside/secret.json", "a\\b.json", "/metrics.json"])
def test_so_does_one_on_s3(server: str, bucket: str, path: str) -> None:
    """In short: the test above; what is read from S3 is checked by the same code."""
    store = Store(uri(server, bucket))
    store.put("score", KEY, DOCUMENT, FILES)
    client(server).put_object(Bucket=bucket, Key="outside/secret.json", Body=SECRET)
    name = f"some/store/score/{KEY[:2]}/{KEY}/manifest.json"
    data = client(server).get_object(Bucket=bucket, Key=name)["Body"].read()
    client(server).put_object(Bucket=bucket, Key=name, Body=rewritten(data, at_path(path)))
    refused(lambda: store.get("score", KEY))


@pytest.mark.parametrize("path", ["../x", "a/../x", "/x", "a//x", "a/./x", "a\\x", "a/x\0", "a/"])
def test_no_storage_takes_a_path_that_leads_out(store: Store, server: str, bucket: str, path: str) -> None:
    for storage in (store.storage, Store(uri(server, bucket)).storage):
        for act in (storage.read, storage.exists, storage.remove_file, lambda at, s=storage: s.remove_folder(at, "m"),
                    lambda at, s=storage: list(s.walk(at)), lambda at, s=storage: s.folders_with(at, "m"),
                    lambda at, s=storage: s.publish(at, {"f": b""})):  # fmt: skip
            refused(lambda act=act: act(path))  # type: ignore[misc]
    assert require_inside("a/b-c.json") == "a/b-c.json"


@pytest.mark.parametrize("names", [["../x", KEY], ["score", "../../x"], ["score", "a/b"], ["score", ""]])
def test_a_record_names_stages_and_keys_only(store: Store, names: list[str]) -> None:
    run = store.record_run("demo", {}, {"score": [KEY]})
    file = Path(store.uri) / "runs" / f"{run}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"keys": {names[0]: [names[1]]}}))
    assert str(f"runs/{run}.json") in refused(store.runs)


@pytest.mark.parametrize(
    "body", [{"keys": [1]}, {"keys": {"score": KEY}}, {"keys": {"score": [1]}}, {"id": "other"}, {"created": 5}]
)
def test_a_record_of_another_form_is_damage(store: Store, body: dict[str, Any]) -> None:
    run = store.record_run("demo", {}, {"score": [KEY]})
    file = Path(store.uri) / "runs" / f"{run}.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | body))
    with pytest.raises(CorruptArtefact, match=f"--drop-run {run}"):
        store.runs()


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body.pop("files"),
        lambda body: body.update(files=[1]),
        lambda body: body.update(seconds="many"),
        lambda body: body.update(created="yesterday"),
        lambda body: body.update(document=3),
        lambda body: body["files"].update(x=1),
        lambda body: body["files"]["metrics.json"].update(size="big"),
        lambda body: body["files"]["metrics.json"].pop("sha256"),
        at_path(3),
    ],
)
def test_a_manifest_of_another_form_is_damage(store: Store, change: Callable[[dict[str, Any]], object]) -> None:
    plant(store, change)
    with pytest.raises(CorruptArtefact, match=rf"^artefact score/{KEY} is damaged: manifest\.json .*--rebuild"):
        store.get("score", KEY)


def test_a_file_that_is_a_link_is_not_read(store: Store, outside: Path) -> None:
    for name in ("metrics", "manifest"):
        (file,) = folder_of(store).glob(f"{name}*")
        (outside / "copy.json").write_bytes(file.read_bytes())
        file.unlink()
        file.symlink_to(outside / "copy.json")
        assert file.name in refused(lambda: store.verify("score", KEY))


def test_a_pipe_in_place_of_a_file_is_refused_and_keeps_nobody_waiting(store: Store) -> None:
    file = folder_of(store) / "manifest.json"
    file.unlink()
    os.mkfifo(file)
    refused(lambda: store.get("score", KEY))


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_folder_that_is_a_link_is_neither_read_nor_written_nor_emptied(
    store: Store, tmp_path: Path, depth: int
) -> None:
    place = Path(store.uri, *("score", KEY[:2], KEY)[: depth + 1])
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    before = sorted(path.name for path in (tmp_path / "elsewhere").rglob("*"))
    for act in (
        lambda: store.get("score", KEY),
        lambda: store.has("score", KEY),
        lambda: store.keys("score"),
        lambda: store.put("score", KEY, DOCUMENT, {"other.json": FILES["metrics.json"]}),
        lambda: store.drop("score", KEY),
        lambda: list(store.artefacts()),
    ):
        assert str(place.relative_to(store.uri)) in refused(act)
    assert sorted(path.name for path in (tmp_path / "elsewhere").rglob("*")) == before


@pytest.mark.parametrize("place", ["claims", "probes", "runs", "index", "checkpoints", "train"])
def test_collecting_garbage_leaves_what_a_link_leads_to(store: Store, outside: Path, place: str) -> None:
    for name in ("secret.json", ".tmp-draft", "score"):
        (outside / name).write_bytes(SECRET)
        os.utime(outside / name, (0, 0))
    (Path(store.uri) / place).symlink_to(outside)
    assert main(["cache", "gc", "--store", store.uri, "--all"]) == BAD_INPUT
    assert sorted(os.listdir(outside)) == [".tmp-draft", "score", "secret.json"]


@pytest.mark.parametrize("link", [".orch", ".orch/store"])
def test_a_store_that_nobody_named_is_no_link(
    link: str, outside: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ORCH_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    claim = (outside if link == ".orch/store" else outside / "store") / "claims" / "of an insurance.txt"
    claim.parent.mkdir(parents=True)
    claim.write_bytes(SECRET)
    os.utime(claim, (0, 0))
    Path(link).parent.mkdir(exist_ok=True)
    Path(link).symlink_to(outside)
    for words in (["cache", "gc"], ["cache", "ls"], ["audit", "mia", "mia-smoke", "--out", "out"]):
        assert main(words) == BAD_INPUT
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{link} is a link to {outside}" in line and "ORCH_STORE" in line
    assert claim.read_bytes() == SECRET and not Path("out").exists()
    (told,) = store_place(None)
    assert (told.status, told.subject) == ("FAIL", "store") and "is a link" in told.found and "--store" in told.fix
    assert main(["cache", "ls", "--store", ".orch/store"]) == 0, "who names it means it"


def test_the_folder_that_the_user_names_may_be_a_link(store: Store, tmp_path: Path) -> None:
    (tmp_path / "name").symlink_to(store.uri)
    assert Store(tmp_path / "name").get("score", KEY).read("metrics.json") == FILES["metrics.json"]


def test_folders_that_are_none_of_a_store_are_passed_over(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("lost+found", "my notes", "score/ab/no key"):
        (Path(store.uri) / name).mkdir(parents=True)
        (Path(store.uri) / name / "manifest.json").write_text("{}")
    assert store.stages() == ["score"]
    assert main(["cache", "ls", "--store", store.uri]) == 0
    assert "1 artefact," in capsys.readouterr().out
    assert find_garbage(store, everything=True).damaged == []


DEEP = b'{"a":' * 100_000


def test_a_record_nested_without_end_is_damage(store: Store) -> None:
    run = store.record_run("demo", {}, {})
    (Path(store.uri) / "runs" / f"{run}.json").write_bytes(DEEP)
    with pytest.raises(CorruptArtefact, match="record"):
        store.runs()


def test_a_file_of_an_artefact_nested_without_end_is_damage() -> None:
    assert wrong_format("x.json", DEEP)
    with pytest.raises(CorruptArtefact):
        unpack_json(DEEP)


@pytest.mark.parametrize(
    "owner",
    [{"pid": "../1"}, {"pid": 10**30}, {"pid": -5}, {"pid": None}, {"pid": 1.5}, {"host": 7}, {"id": []}, "deep"],
)
def test_a_claim_that_says_anything_ends_no_run(store: Store, owner: Any) -> None:
    mine, other = this_process(), {**this_process().to_json(), "id": "another", "started": "never"}
    content = DEEP if owner == "deep" else json.dumps({"owner": {**other, **owner}, "beat": [None]}).encode()
    store.storage.publish("claims", {f"score.{KEY}.0.json": content})
    taken = store.claims.take("score", KEY, mine)
    assert str(taken)
    store.claims.forget_the_dead()
