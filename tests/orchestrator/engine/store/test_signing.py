"""Manifests that are signed with the key of a team: whoever lacks the key can plant nothing."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from audits.errors import BadInput
from audits.training.keeper import Snapshot
from orchestrator.cli.main import BAD_INPUT, DONE, main
from orchestrator.cli.node_report import Question
from orchestrator.engine.jobs.keys import artefact_key
from orchestrator.engine.run.trusted import TrustedContexts
from orchestrator.engine.store import trust
from orchestrator.engine.store.checkpoints import JobKeeper
from orchestrator.engine.store.faults import CorruptArtefact
from orchestrator.engine.store.manifest import sealed
from orchestrator.engine.store.payloads import pack_json
from orchestrator.engine.store.store import Store
from orchestrator.engine.store.trust import Trust, holding
from orchestrator.kinds import kind_named
from tests.orchestrator.engine.store.refusals import refused
from tests.orchestrator.engine.store.s3_server import uri

VARIABLE = "ORCH_STORE_KEY_FILE"
DOCUMENT = {"seed": 7}
KEY, OTHER = artefact_key("score", DOCUMENT), artefact_key("score", {"seed": 8})
FILES = {"metrics.json": pack_json({"accuracy": 0.5})}
TEAM, STRANGER = b"k" * 32, b"s" * 32


def key_file(folder: Path, content: bytes = TEAM, mode: int = 0o600) -> str:
    file = folder / f"key-{len(os.listdir(folder))}"
    file.write_bytes(content)
    file.chmod(mode)
    return str(file)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv(VARIABLE, raising=False)
    return str(tmp_path / "store")


def store_with(place: str, key: bytes) -> Store:
    return Store(place, trust=Trust(key=key))


def manifest_of(place: str, key: str = KEY) -> Path:
    return Path(place) / "score" / key[:2] / key / "manifest.json"


def changed(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a manifest and give it the checksum of its new content; the signature stays as it is."""
    body = json.loads(file.read_bytes())
    del body["sha256"]
    signature = body.pop("hmac", None)
    change(body)
    file.write_bytes(sealed(body if signature is None else body | {"hmac": signature}))


def test_who_has_the_key_reads_what_was_signed_with_it(place: str) -> None:
    store_with(place, TEAM).put("score", KEY, DOCUMENT, FILES)
    assert store_with(place, TEAM).get("score", KEY).read("metrics.json") == FILES["metrics.json"]
    assert Store(place).get("score", KEY).read("metrics.json") == FILES["metrics.json"], "nobody looks without a key"
    assert TEAM not in manifest_of(place).read_bytes()


@pytest.mark.parametrize("writer", [b"", STRANGER])
def test_what_is_not_signed_or_with_another_key_is_refused(place: str, writer: bytes) -> None:
    store_with(place, writer).put("score", KEY, DOCUMENT, FILES)
    text = refused(lambda: store_with(place, TEAM).get("score", KEY))
    assert f"score/{KEY}" in text
    assert "--rebuild" in text
    refused(lambda: store_with(place, TEAM).verify("score", KEY))
    refused(lambda: list(store_with(place, TEAM).artefacts()))
    assert list(store_with(place, TEAM).artefacts(on_damage=lambda *_: None)) == []


def test_so_it_is_on_s3(server: str, bucket: str, place: str) -> None:
    for writer in (b"", TEAM):
        store_with(uri(server, bucket), writer).put("score", KEY, DOCUMENT, FILES)
        if writer:
            assert store_with(uri(server, bucket), TEAM).get("score", KEY).files
        else:
            refused(lambda: store_with(uri(server, bucket), TEAM).get("score", KEY))


@pytest.mark.parametrize(
    "change",
    [
        lambda body: body["files"]["metrics.json"].update(sha256="0" * 64),
        lambda body: body["files"]["metrics.json"].update(path="other.json"),
        lambda body: body.update(document={"seed": 8}),
        lambda body: body.update(seconds=5.0),
        lambda body: body.update(hmac="0" * 64),
        lambda body: body.update(hmac=None),
        lambda body: body.update(hmac="ü"),
    ],
)
def test_every_field_is_signed(place: str, change: Callable[[dict[str, Any]], object]) -> None:
    store_with(place, TEAM).put("score", KEY, DOCUMENT, FILES)
    file = manifest_of(place)
    body = json.loads(file.read_bytes())
    del body["sha256"]
    change(body)
    file.write_bytes(sealed(body))
    refused(lambda: store_with(place, TEAM).get("score", KEY))


@pytest.mark.parametrize("field", ["key", "stage"])
def test_a_signed_artefact_cannot_be_moved_to_the_place_of_another(place: str, field: str) -> None:
    store_with(place, TEAM).put("score", KEY, DOCUMENT, FILES)
    to = ("score", OTHER) if field == "key" else ("train", KEY)
    moved = Path(place) / to[0] / to[1][:2] / to[1]
    moved.parent.mkdir(parents=True, exist_ok=True)
    manifest_of(place).parent.rename(moved)
    changed(moved / "manifest.json", lambda body: body.update(stage=to[0], key=to[1]))
    assert Store(place).get(*to).files, "without a key nobody could tell"
    refused(lambda: store_with(place, TEAM).get(*to))


def test_a_checkpoint_of_somebody_else_is_passed_over(place: str, caplog: pytest.LogCaptureFixture) -> None:
    """Or a training would go on from weights that a stranger has planted, and be signed at its end."""
    snapshot = Snapshot({"w": torch.ones(2)}, {"epoch": 1})
    for writer in (b"", STRANGER):
        JobKeeper(store_with(place, writer), "train", KEY, 1).save(snapshot)
        assert JobKeeper(store_with(place, TEAM), "train", KEY, 1).last() is None
    assert "it is passed over" in caplog.text
    JobKeeper(store_with(place, TEAM), "train", KEY, 1).save(snapshot)
    found = JobKeeper(store_with(place, TEAM), "train", KEY, 1).last()
    assert found is not None
    assert found.notes == {"epoch": 1}


@pytest.mark.parametrize(
    ("content", "mode"), [(TEAM, 0o644), (TEAM, 0o640), (TEAM, 0o660), (TEAM, 0o604), (b"short", 0o600), (b"", 0o600)]
)
def test_a_key_that_others_can_read_or_guess_is_refused(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, mode: int
) -> None:
    monkeypatch.setenv(VARIABLE, key_file(tmp_path, content, mode))
    with pytest.raises(BadInput, match=rf"^{VARIABLE}: ") as error:
        Store(place).keys("score")
    assert "\n" not in str(error.value)
    assert content == b"" or content.decode() not in str(error.value)


@pytest.mark.parametrize("value", ["", "nowhere/key", "/", "/dev/null"])
def test_a_key_that_is_not_there_is_refused_and_not_done_without(
    place: str, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(BadInput, match=rf"^{VARIABLE}: "):
        Store(place).put("score", KEY, DOCUMENT, FILES)
    assert not Path(place).exists()
    assert main(["cache", "ls", "--store", place]) == BAD_INPUT


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives a file away")
def test_a_key_of_another_user_is_refused(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, key_file(tmp_path))
    os.chown(os.environ[VARIABLE], 54321, -1)
    with pytest.raises(BadInput, match=rf"^{VARIABLE}: .*belongs to"):
        Store(place).keys("score")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a file of root")
@pytest.mark.parametrize(("mode", "fits"), [(0o440, True), (0o640, True), (0o444, False), (0o460, False)])
def test_a_group_may_read_a_key_of_root_as_clusters_mount_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, fits: bool
) -> None:
    file = key_file(tmp_path, TEAM, mode)
    monkeypatch.setattr(trust.os, "geteuid", lambda: 54321)
    if fits:
        assert Trust.of({VARIABLE: file}).key == TEAM
    else:
        with pytest.raises(BadInput, match=rf"^{VARIABLE}: others can"):
            Trust.of({VARIABLE: file})


def test_doctor_sends_no_key_to_nodes_and_reports_one_that_is_wrong(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(VARIABLE, key_file(tmp_path))
    assert TEAM not in pickle.dumps(Question(place, "probe", b"word", ("digits", None, None)))
    with holding(Trust(("/srv",), TEAM)):
        assert Question(place, "probe", b"word", ("digits", None, None)).trust == Trust(("/srv",))
    monkeypatch.setenv(VARIABLE, key_file(tmp_path, TEAM, 0o644))
    assert Question(place, "probe", b"word", ("digits", None, None)).trust == Trust()
    assert main(["doctor", "--json", "--store", place, "--out", str(tmp_path)]) == 3
    failed = [each for each in json.loads(capsys.readouterr().out) if each["status"] == "FAIL"]
    assert [each["subject"] for each in failed] == ["store key"] and "chmod 600" in failed[0]["fix"]


def test_the_environments_key_signs_travels_to_workers_and_is_shown_nowhere(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, key_file(tmp_path, TEAM + b"\n"))
    store = Store(place)
    store.put("score", KEY, DOCUMENT, FILES)
    contexts = TrustedContexts(kind_named("apollo"), {}, place, "cpu", "")
    assert TEAM.decode() not in repr([store, store.trust, contexts])
    travelled = pickle.loads(pickle.dumps((store, contexts)))
    monkeypatch.delenv(VARIABLE)
    Store(place).put("score", OTHER, {"seed": 8}, FILES)
    refused(lambda: travelled[0].get("score", OTHER))
    assert travelled[0].get("score", KEY).files
    assert travelled[1].trust.key == TEAM


def test_the_command_line_refuses_in_one_line(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Store(place).put("score", KEY, DOCUMENT, FILES)
    monkeypatch.setenv(VARIABLE, key_file(tmp_path))
    assert main(["cache", "why", KEY, "--store", place]) == BAD_INPUT
    (line,) = capsys.readouterr().err.splitlines()
    assert VARIABLE in line
    Store(place).put("score", KEY, DOCUMENT, FILES)
    assert main(["cache", "why", KEY, "--store", place]) == DONE


def test_what_is_not_signed_is_listed_as_a_problem_and_kept(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Store(place).put("score", KEY, DOCUMENT, FILES, seconds=0.1)
    monkeypatch.setenv(VARIABLE, key_file(tmp_path))
    Store(place).put("score", OTHER, {"seed": 8}, FILES, seconds=0.1)
    assert main(["cache", "ls", "--store", place]) == DONE
    told = capsys.readouterr()
    assert f"score/{KEY} is not signed" in told.out + told.err
    assert main(["cache", "gc", "--store", place]) == DONE
    assert manifest_of(place).exists() and not manifest_of(place, OTHER).exists()


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 100_000])
def test_a_manifest_that_is_too_deep_is_damaged(place: str, content: bytes) -> None:
    Store(place).put("score", KEY, DOCUMENT, FILES, seconds=0.1)
    manifest_of(place).write_bytes(content)
    with pytest.raises(CorruptArtefact):
        Store(place).get("score", KEY)
