"""A run with the key of a team on a store that others have filled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.engine.store.faults import Unsigned
from tests.cases.runs import audited
from tests.orchestrator.toy.bench import Bench


def test_a_run_refuses_what_is_not_signed_and_rebuild_makes_it_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path)
    first = audited(bench.plan(), tmp_path / "out")
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    key.chmod(0o600)
    monkeypatch.setenv("ORCH_STORE_KEY_FILE", str(key))
    with pytest.raises(Unsigned, match=r"--rebuild"):
        audited(bench.plan(), tmp_path / "out")
    again = audited(bench.plan(), tmp_path / "out", rebuild=True)
    assert again.scores.equals(first.scores)
    manifests = list((tmp_path / "store").rglob("manifest.json"))
    assert len(manifests) == sum(bench.made().values())
    assert all("hmac" in json.loads(file.read_text()) for file in manifests)
    assert audited(bench.plan(), tmp_path / "out").scores.equals(first.scores)
