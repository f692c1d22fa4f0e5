"""A run with the key of a team on a store that others have filled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engine.store.faults import Unsigned
from orchestrator.engine.store.store import Store
from tests.cases.runs import audited, take_turns, two_in_turn
from tests.cases.smallest_plans import smallest_plan
from tests.orchestrator.toy.bench import Bench

VARIABLE = "ORCH_STORE_KEY_FILE"


def key_in(folder: Path) -> str:
    key = folder / "key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o600)
    return str(key)


def test_a_run_refuses_what_is_not_signed_and_rebuild_makes_it_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    first = audited(bench.plan(), tmp_path / "out")
    monkeypatch.setenv(VARIABLE, key_in(tmp_path))
    with pytest.raises(Unsigned, match=r"--rebuild"):
        audited(bench.plan(), tmp_path / "out")
    again = audited(bench.plan(), tmp_path / "out", rebuild=True)
    assert again.scores.equals(first.scores)
    manifests = list((tmp_path / "store").rglob("manifest.json"))
    assert len(manifests) == sum(bench.made().values())
    assert all("hmac" in json.loads(file.read_text()) for file in manifests)
    assert audited(bench.plan(), tmp_path / "out").scores.equals(first.scores)


@pytest.mark.long
def test_a_ranking_that_is_not_signed_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read when the other work is laid out. In short: the test above."""
    plan = smallest_plan("apollo, memorised points", tmp_path / "store")
    first = audited(plan, tmp_path / "out")
    monkeypatch.setenv(VARIABLE, key_in(tmp_path))
    with pytest.raises(Unsigned, match=r"--rebuild"):
        audited(plan, tmp_path / "out")
    assert audited(plan, tmp_path / "out", rebuild=True).scores.equals(first.scores)


def test_workers_sign_with_the_key_of_the_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their own environment, on another machine, need not name it."""

    def elsewhere(*words: Any, **named: Any) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv(VARIABLE)
            two_in_turn(*words, **named)

    monkeypatch.setenv(VARIABLE, key_in(tmp_path))
    take_turns(monkeypatch, elsewhere)
    bench = Bench(tmp_path)
    audited(bench.plan(compute__workers=2), tmp_path / "out")
    store = Store(str(tmp_path / "store"))
    assert store.trust.key == b"k" * 32
    assert len(list(store.artefacts())) == sum(bench.made().values()) > 0
