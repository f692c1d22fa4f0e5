"""``orch cache gc`` in the midst of a run: what the run has made, and what it is about to make, stays."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engine.store.garbage import collect, find_garbage
from orchestrator.engine.store.store import Store
from tests.cases.runs import audited
from tests.orchestrator.toy.bench import Bench


def test_garbage_that_is_collected_after_every_job_is_none_of_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put: Callable[..., None] = Store.put
    collected = []

    def then_collect(store: Store, *words: Any, **named: Any) -> None:
        put(store, *words, **named)
        garbage = find_garbage(store, now=time.time() + 3600 * 24 * 365)
        collect(store, garbage)
        collected.extend([*garbage.unreferenced, *garbage.damaged])

    first = audited(Bench(tmp_path / "one").plan(), tmp_path / "out")
    monkeypatch.setattr(Store, "put", then_collect)
    bench = Bench(tmp_path / "two")
    again = audited(bench.plan(), tmp_path / "again")
    assert collected == [] and again.scores.equals(first.scores)
    assert bench.made() == Bench(tmp_path / "one").made()
    Store(str(tmp_path / "two" / "store")).put("score", "ab" * 16, {"seed": 7}, {})
    assert [each.key for each in collected] == ["ab" * 16], "of no run"
