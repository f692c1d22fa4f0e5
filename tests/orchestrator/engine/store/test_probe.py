"""A worker that sees another store than its driver says so before it works."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from actors.jobs import Workers
from audits.errors import BadInput
from orchestrator.engine.run.crew import Crew
from orchestrator.engine.run.worker import OpenContexts
from orchestrator.engine.store.garbage import collect, find_garbage
from orchestrator.engine.store.probe import check_probe, drop_probe, write_probe
from orchestrator.engine.store.store import Store
from tests.orchestrator.toy.kind import KIND


def test_a_worker_without_the_drivers_store_does_not_begin(tmp_path: Path) -> None:
    token = write_probe(Store(tmp_path / "shared"))
    contexts = OpenContexts(KIND, {}, str(tmp_path / "own"), "cpu", "", token)
    with pytest.raises(BadInput, match=rf"the store {tmp_path}/own as \S+ sees it is not the one .* s3://") as error:
        contexts.open("plan")
    assert "\n" not in str(error.value)
    with pytest.raises(KeyError, match="plan"):  # the probe is found: next is the plan, which there is none of
        OpenContexts(KIND, {}, str(tmp_path / "shared"), "cpu", "", token).open("plan")


@pytest.mark.parametrize("address", [None, "auto"])
def test_a_run_on_other_machines_leaves_a_probe_while_it_lasts(tmp_path: Path, address: str | None) -> None:
    store = Store(tmp_path / "store")
    plan = SimpleNamespace(compute=SimpleNamespace(address=address))
    crew = SimpleNamespace(plan=plan, store=store, workers=Workers(0), probe="")
    with Crew.connected(crew):  # type: ignore[arg-type]  # what it reads of a crew
        assert bool(crew.probe) == (address is not None)
        if crew.probe:
            check_probe(Store(store.uri), crew.probe)
            assert store.stages() == []
    assert not list(tmp_path.rglob("*.json"))


def test_a_probe_is_no_garbage_until_no_run_can_be_using_it(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    token = write_probe(store)
    collect(store, find_garbage(store, now=time.time() + 7 * 86400))
    check_probe(store, token)
    collect(store, find_garbage(store, now=time.time() + 31 * 86400))
    with pytest.raises(BadInput):
        check_probe(store, token)
    drop_probe(store, token)
    assert not list(tmp_path.rglob("*.json"))
