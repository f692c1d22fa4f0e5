"""``orch cache``: what it lists, what it says made the difference, and what it removes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from audits.errors import BadInput
from orchestrator.cli.cache import command
from orchestrator.engine.jobs.keys import artefact_key, digest
from orchestrator.engine.store.faults import CorruptArtefact
from orchestrator.engine.store.inventory import age_text, size_text, what_it_is
from orchestrator.engine.store.payloads import pack_json
from orchestrator.engine.store.store import Store

SHADOW = {"role": "shadow", "index": 3, "points": digest(b"points"), "recipe": {"epochs": 60, "learning_rate": 0.002}}
LONGER = SHADOW | {"recipe": {"epochs": 90, "learning_rate": 0.002}}
OTHER = {"role": "target", "index": 1, "points": digest(b"more"), "recipe": {"epochs": 30, "learning_rate": 0.1}}


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    monkeypatch.setenv("ORCH_STORE", str(tmp_path / "store"))
    return Store(tmp_path / "store")


def put(store: Store, document: dict[str, object], stage: str = "train") -> str:
    key = artefact_key(stage, document)
    store.put(stage, key, document, {"metrics.json": pack_json({"loss": 0.5})})
    return key


def cache(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments)


def output(*arguments: str) -> str:
    result = cache(*arguments)
    assert result.exception is None, result.exception
    return result.output


def age(store: Store, hours: float) -> None:
    for path in Path(store.uri).rglob("*"):
        then = path.stat().st_mtime - hours * 3600
        os.utime(path, (then, then))


def leftover(store: Store, key: str) -> Path:
    path = Path(store.uri) / "train" / key[:2] / key / ".tmp-77-abc-weights.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half")
    return path


def test_ls_of_an_empty_store_says_so(store: Store) -> None:
    assert output("ls").splitlines() == [f"no artefacts in {store.uri}", "no recorded runs"]


def test_ls_shows_what_each_artefact_is_totals_and_runs(store: Store) -> None:
    keys = [put(store, SHADOW), put(store, OTHER), put(store, {"attack": "lira", "of": "0" * 32}, "score")]
    run = store.record_run("demo", {"seed": 0}, {"train": [*keys[:2], "f" * 32]})
    text = output("ls")
    assert f"train  {keys[0][:12]}" in text
    assert "shadow index=3 epochs=60 learning_rate=0.002" in text
    assert "3 artefacts" in text
    assert "score 1 (" in text
    assert "train 2 (" in text
    assert any(line.split()[:2] == [run, "demo"] and line.endswith("2 of 3") for line in text.splitlines())
    assert "lira" not in output("ls", "--stage", "train")


def test_ls_prints_json(store: Store) -> None:
    key = put(store, SHADOW)
    run = store.record_run("demo", {"seed": 0}, {"train": [key]})
    found = json.loads(output("ls", "--json"))
    assert found["store"] == store.uri
    assert [(a["stage"], a["key"], a["document"]) for a in found["artefacts"]] == [("train", key, SHADOW)]
    assert found["totals"] == {"train": {"artefacts": 1, "bytes": found["artefacts"][0]["size"]}}
    assert [(r["id"], r["keys"]) for r in found["runs"]] == [(run, {"train": [key]})]


def test_ls_names_a_damaged_artefact_and_lists_the_others(store: Store) -> None:
    bad, good = put(store, SHADOW), put(store, OTHER)
    (Path(store.uri) / "train" / bad[:2] / bad / "manifest.json").write_text("")
    text = output("ls")
    assert f"artefact train/{bad} is damaged: manifest.json is empty" in text
    assert good[:12] in text


def test_the_store_option_goes_before_the_environment(store: Store, tmp_path: Path) -> None:
    put(store, SHADOW)
    assert "no artefacts" in output("ls", "--store", str(tmp_path / "another"))


def test_why_compares_with_the_nearest_artefact_of_the_stage(store: Store) -> None:
    keys = [put(store, document) for document in (SHADOW, LONGER, OTHER)]
    put(store, SHADOW | {"attack": "lira"}, "score")
    lines = output("why", keys[0][:8]).splitlines()
    assert keys[1][:12] in lines[1]
    assert lines[2] == "1 field differs:"
    assert lines[4].split() == ["recipe.epochs", "60", "90"]
    assert len(lines) == 5


def test_why_compares_with_the_artefact_that_is_named(store: Store) -> None:
    keys = [put(store, document) for document in (SHADOW, LONGER, OTHER)]
    lines = output("why", f"train/{keys[0]}", keys[2][:10]).splitlines()
    assert lines[2] == "5 fields differ:"
    fields = [line.split()[0] for line in lines[4:]]
    assert fields == ["index", "points", "recipe.epochs", "recipe.learning_rate", "role"]


def test_why_of_the_only_artefact_says_so(store: Store) -> None:
    assert "only artefact of the stage train" in output("why", put(store, SHADOW))


def test_an_unknown_or_ambiguous_key_is_bad_input_in_one_line(store: Store) -> None:
    put(store, SHADOW)
    put(store, OTHER)
    for arguments, message in ((("why", "zz"), "no artefact 'zz'"), (("why", "train/"), "start of 2 artefacts")):
        error = cache(*arguments).exception
        assert isinstance(error, BadInput)
        assert message in str(error)
        assert "\n" not in str(error)


def test_gc_removes_what_no_run_refers_to_and_keeps_the_rest(store: Store) -> None:
    kept, lost = put(store, SHADOW), put(store, OTHER)
    store.record_run("demo", {}, {"train": [kept]})
    text = output("gc")
    assert "removed 1 artefact that no recorded run refers to" in text
    assert "kept 1 artefact" in text
    assert store.keys("train") == {kept}
    assert not (Path(store.uri) / "train" / lost[:2] / lost).exists()
    store.verify("train", kept)


def test_gc_dry_run_names_the_same_and_removes_nothing(store: Store) -> None:
    key = put(store, SHADOW)
    run = store.record_run("demo", {}, {"train": [key]})
    path = leftover(store, "a" * 32)
    age(store, 2)
    before = sorted(Path(store.uri).rglob("*"))
    dry = output("gc", "--dry-run", "--drop-run", run)
    assert sorted(Path(store.uri).rglob("*")) == before
    assert output("gc", "--drop-run", run) == dry.replace("would remove", "removed")
    assert store.keys("train") == set()
    assert not path.exists()
    assert store.runs() == []


def test_gc_spares_young_leftovers_unless_told(store: Store) -> None:
    key = put(store, SHADOW)
    store.record_run("demo", {}, {"train": [key]})
    beside, alone = leftover(store, key), leftover(store, "a" * 32)
    assert "left 2 unfinished file(s) younger than an hour" in output("gc")
    assert beside.exists()
    assert alone.exists()
    assert "removed 2 files of interrupted writes" in output("gc", "--all")
    assert not beside.exists()
    assert not alone.parent.exists()
    store.verify("train", key)


def test_gc_removes_old_leftovers_and_payloads_without_a_manifest(store: Store) -> None:
    key, halves = put(store, SHADOW), put(store, OTHER)
    store.record_run("demo", {}, {"train": [key, halves]})
    leftover(store, key)
    (Path(store.uri) / "train" / halves[:2] / halves / "manifest.json").unlink()
    age(store, 2)
    output("gc")
    assert not list(Path(store.uri).rglob(".tmp-*"))
    assert not (Path(store.uri) / "train" / halves[:2] / halves).exists()
    store.verify("train", key)


@pytest.mark.parametrize("damage", ["manifest", "flip", "cut", "remove"])
@pytest.mark.parametrize("options", [(), ("--sizes-only",)], ids=["checksums", "sizes"])
def test_gc_removes_damaged_artefacts_that_a_run_refers_to(store: Store, damage: str, options: tuple[str, ...]) -> None:
    good, bad = put(store, SHADOW), put(store, OTHER)
    store.record_run("demo", {}, {"train": [good, bad]})
    folder = Path(store.uri) / "train" / bad[:2] / bad
    (payload,) = folder.glob("metrics-*")
    if damage == "manifest":
        (folder / "manifest.json").write_text("{}")
    elif damage == "remove":
        payload.unlink()
    else:
        payload.write_bytes(payload.read_bytes().replace(b"5", b"6" if damage == "flip" else b""))
    text = output("gc", *options)
    unseen = damage == "flip" and bool(options)
    assert store.keys("train") == ({good, bad} if unseen else {good})
    assert (f"artefact train/{bad} is damaged" in text) != unseen


def test_gc_older_than_spares_young_artefacts(store: Store) -> None:
    key = put(store, SHADOW)
    assert "kept 1 artefact" in output("gc", "--older-than", "1")
    assert store.keys("train") == {key}
    output("gc", "--older-than", "0")
    assert store.keys("train") == set()


def test_gc_refuses_to_guess_when_the_record_of_a_run_is_damaged(store: Store) -> None:
    key = put(store, SHADOW)
    run = store.record_run("demo", {}, {"train": [key]})
    (Path(store.uri) / "runs" / f"{run}.json").write_text("{")
    error = cache("gc").exception
    assert isinstance(error, CorruptArtefact)
    assert f"--drop-run {run}" in str(error)
    assert store.keys("train") == {key}
    output("gc", "--drop-run", run)
    assert store.keys("train") == set()


def test_gc_of_an_unknown_run_is_bad_input(store: Store) -> None:
    key = put(store, SHADOW)
    run = store.record_run("demo", {}, {})
    error = cache("gc", "--drop-run", "zz").exception
    assert isinstance(error, BadInput)
    assert run in str(error)
    assert store.keys("train") == {key}


def test_gc_touches_no_file_that_is_not_the_stores(store: Store) -> None:
    put(store, SHADOW)
    mine = [Path(store.uri) / name for name in ("notes.txt", "thesis/chapter.txt", "train/notes.txt", "a/bc/bcd/x.txt")]
    for path in mine:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    age(store, 48)
    output("gc", "--all")
    assert all(path.read_text() == "mine" for path in mine)
    assert store.keys("train") == set()


def test_a_document_in_one_line_leaves_hashes_out_and_fits() -> None:
    assert what_it_is(SHADOW) == "shadow index=3 epochs=60 learning_rate=0.002"
    assert what_it_is({"points": [1, 2, 3], "none": None, "flip": True}) == "points[3] flip=True"
    assert what_it_is({"name": "long " * 30}, width=20) == "long long long long…"


def test_sizes_and_ages_are_for_people() -> None:
    assert [size_text(size) for size in (0, 999, 1000, 170_000, 2_500_000_000)] == [
        "0 B",
        "999 B",
        "1 kB",
        "170 kB",
        "2.5 GB",
    ]
    assert [age_text(age) for age in (-1, 5, 90, 7200, 200_000)] == ["0 s", "5 s", "2 min", "2 h", "2 d"]
