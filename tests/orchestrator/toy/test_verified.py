"""``orch verify``: what somebody has planted in the store is found, although every checksum is right."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from orchestrator.cli.main import BAD_INPUT, DONE, GATE_FAILED, main
from orchestrator.engine.run.attempts import FAILED
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.verifying import BY_ROUNDING, Verifying
from orchestrator.engine.store.payloads import pack_arrays, pack_json, pack_table, unpack_arrays, unpack_table
from orchestrator.engine.store.store import Store
from orchestrator.kinds import kind_named
from tests.cases.runs import audited, swept
from tests.orchestrator.toy.bench import Bench
from tune_spaces.registry import Sweep, fixed

ALL = ("--sample", "99")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A place with a finished run and its store, which nobody changes."""
    place = tmp_path_factory.mktemp("made")
    audited(Bench(place).plan(), place / "out")
    return place


@pytest.fixture
def run(made: Path, tmp_path: Path) -> Path:
    """The folder of a finished run; its store lies beside it."""
    for name in ("out", "store"):
        shutil.copytree(made / name, tmp_path / name)
    return tmp_path / "out"


def store_of(run: Path) -> Store:
    return Store(str(run.parent / "store"))


def verified(run: Path, *words: str) -> int:
    return main(["verify", str(run), "--workers", "0", "--store", store_of(run).uri, *words])


def shuffle_scores(store: Store, key: str) -> None:
    """Store the scores of a key in another order, under checksums that are right."""
    artefact = store.get("score", key)
    files = {name: artefact.read(name) for name in artefact.files}
    table = unpack_table(files["scores.parquet"])
    at = table.column_names.index("score")
    shuffled = np.random.default_rng(0).permutation(table["score"].to_numpy())
    files["scores.parquet"] = pack_table(table.set_column(at, "score", [shuffled]))
    store.put("score", key, artefact.document, files, seconds=artefact.seconds)


def nudge_weights(store: Store, key: str) -> None:
    artefact = store.get("train", key)
    files = {name: artefact.read(name) for name in artefact.files}
    weights = unpack_arrays(files["weights.safetensors"])
    name = min(weights)
    weights[name] = weights[name] + np.float32(1e-6)
    files["weights.safetensors"] = pack_arrays(weights)
    store.put("train", key, artefact.document, files, seconds=artefact.seconds)


def test_what_a_run_made_is_what_is_made_again(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {file: file.read_bytes() for file in Path(store_of(run).uri).rglob("*") if file.is_file()}
    assert verified(run, *ALL, "--json") == DONE
    found = json.loads(capsys.readouterr().out)
    assert found["drawn"] == found["artefacts"] == {"train": 3, "score": 3}
    assert all(each["exact"] for each in found["verified"])
    assert {file: file.read_bytes() for file in Path(store_of(run).uri).rglob("*") if file.is_file()} == before


def test_shuffled_scores_with_right_checksums_are_found(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = store_of(run)
    key = min(store.keys("score"))
    shuffle_scores(store, key)
    store.verify("score", key)
    assert verified(run, *ALL) == GATE_FAILED
    told = capsys.readouterr().out
    (line,) = [line for line in told.splitlines() if " differs: " in line]
    assert line.startswith(f"score/{key} differs: scores.parquet: score, ")


def test_rebuild_looks_at_checksums_alone_and_leaves_them(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = store_of(run)
    shuffle_scores(store, min(store.keys("score")))
    audited(Bench(run.parent).plan(), run, rebuild=True)
    assert "6 artefacts checked, 0 damaged" in capsys.readouterr().out
    assert verified(run, *ALL) == GATE_FAILED


def test_so_is_a_model_and_scores_that_are_made_of_it_are_held_to_it(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_of(run)
    key = min(store.keys("train"))
    nudge_weights(store, key)
    assert verified(run, *ALL, "--json") == GATE_FAILED
    found = json.loads(capsys.readouterr().out)
    unlike = [each for each in found["verified"] if each["differences"]]
    assert [each["key"] for each in unlike if each["stage"] == "train"] == [key]
    assert sorted(each["stage"] for each in unlike) == ["score", "train"], "one score was made of another model"


def test_inputs_are_there_with_the_seconds_that_bodies_read(run: Path) -> None:
    """Such as Apollo's table of what unlearning took."""
    plan, fresh = Bench(run.parent).plan(), Store(str(run.parent / "fresh"))
    verifying = Verifying(kind_named("toy"), plan, plan.settings(), fresh, Terminal(json=True))
    verifying.bring_inputs([job for job in verifying.there if job.stage == "score"])
    took = {each.key: each.seconds for each in store_of(run).artefacts("train")}
    assert {each.key: each.seconds for each in fresh.artefacts()} == took
    assert all(took.values())


def test_a_damaged_artefact_is_one_that_differs(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = store_of(run)
    key = min(store.keys("score"))
    (file,) = (Path(store.uri) / "score" / key[:2] / key).glob("scores*")
    data = file.read_bytes()
    file.write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])
    assert verified(run, *ALL) == GATE_FAILED
    assert f"score/{key} differs: artefact score/{key} is damaged" in capsys.readouterr().out


def test_a_sample_takes_each_stage_in_its_turn_and_its_seed_repeats_it(
    run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def drawn(*words: str) -> tuple[int, list[str]]:
        assert verified(run, "--sample", "2", "--json", *words) == DONE
        found = json.loads(capsys.readouterr().out)
        assert found["drawn"] == {"score": 1, "train": 1}
        return found["seed"], [each["key"] for each in found["verified"]]

    assert drawn("--seed", "7") == drawn("--seed", "7")
    seed, keys = drawn()
    assert drawn("--seed", str(seed)) == (seed, keys)


def test_a_store_does_not_choose_how_it_is_compared(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_of(run)
    nudge_weights(store, key := min(store.keys("train")))
    monkeypatch.setattr("orchestrator.engine.run.verifying.machine_kind", lambda: "another")
    assert verified(run, *ALL, "--json") == GATE_FAILED
    found = json.loads(capsys.readouterr().out)["verified"]
    assert all(each["exact"] for each in found)
    unlike = {each["key"]: each["differences"][-1] for each in found if each["differences"]}
    assert key in unlike and set(unlike.values()) == {BY_ROUNDING}
    shuffle_scores(store, min(store.keys("score")))
    assert verified(run, *ALL) == GATE_FAILED and BY_ROUNDING in capsys.readouterr().out


def test_another_kind_of_machine_is_allowed_rounding_and_no_more(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = store_of(run)
    nudge_weights(store, min(store.keys("train")))
    monkeypatch.setattr("orchestrator.engine.run.verifying.machine_kind", lambda: "another")
    assert verified(run, *ALL, "--rounding", "--json") == DONE
    assert not any(each["exact"] for each in json.loads(capsys.readouterr().out)["verified"])
    shuffle_scores(store, min(store.keys("score")))
    assert verified(run, *ALL, "--rounding") == GATE_FAILED


@pytest.mark.long
def test_of_a_sweep_all_settings_are_drawn_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = Bench(tmp_path).plan()
    settings = {"short": {"recipe.epochs": 1}, "shorter": {"recipe.epochs": 2}}
    swept(Sweep("toy-sweep", "Fewer epochs.", "", fixed(settings), "loss.auc", "a table"), plan, tmp_path / "out")
    store = store_of(tmp_path / "out")
    key = max(store.keys("score"))
    shuffle_scores(store, key)
    capsys.readouterr()
    assert verified(tmp_path / "out", *ALL, "--json") == GATE_FAILED
    found = json.loads(capsys.readouterr().out)
    assert found["drawn"] == {"train": 6, "score": 6}
    assert [each["key"] for each in found["verified"] if each["differences"]] == [key]


def test_scores_of_which_an_attack_failed_are_not_drawn(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = store_of(run)
    key = min(store.keys("score"))
    artefact = store.get("score", key)
    files = {name: artefact.read(name) for name in artefact.files}
    store.put("score", key, artefact.document, {**files, FAILED: pack_json({"loss": "Traceback"})})
    assert verified(run, *ALL, "--json") == DONE
    found = json.loads(capsys.readouterr().out)
    assert found["drawn"] == {"train": 3, "score": 2}
    assert key not in {each["key"] for each in found["verified"]}


def test_a_store_without_anything_of_the_plan_is_bad_input(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verified(run, "--set", "recipe.epochs=9") == BAD_INPUT
    assert verified(run, "--store", str(run.parent / "other")) == BAD_INPUT
    assert main(["verify", str(run.parent)]) == BAD_INPUT
    assert len(capsys.readouterr().err.splitlines()) == 3
