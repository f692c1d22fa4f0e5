"""A search that is killed in the middle and run again: nothing is done twice, and its table is the undisturbed one."""

from __future__ import annotations

import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from orchestrator.engine.run.search_journal import JOURNAL_FILE
from orchestrator.engine.store.store import Store
from tests.cases.processes import below, kill_all, start, wait_for

SEARCH = """\
title: Radius and weights of Apollo's search, by Optuna with ASHA
base: apollo-smoke
space:
  audit.search.epsilon: {loguniform: [0.01, 1.0]}
  audit.search.beta: {loguniform: [0.25, 16]}
  audit.search.steps: {randint: [1, 4]}
  audit.search.norm: [l2, linf]
samples: 30
search: optuna
scheduler: {asha: {grace: 1, reduction: 2}}
metric: gradient_ascent.apollo.auc
mode: max
at_a_time: 1
"""
PLAN = ("--set", "split.targets=4", "--set", "audit.attacks=[apollo]", "--workers", "2", "--store", "store")
STAGES = ("train", "unlearn", "trace", "search", "score", "utility")


def lines(place: Path) -> list[dict[str, Any]]:
    """Return the whole lines of a search's journal; none before it has begun."""
    file = place / "out" / JOURNAL_FILE
    whole = file.read_bytes().splitlines(keepends=True) if file.exists() else []
    return [json.loads(line) for line in whole if line.endswith(b"\n")]


def made(place: Path) -> dict[tuple[str, str], tuple[str, float]]:
    """Return when each artefact of the store was made."""
    store = Store(str(place / "store"))
    found = ((stage, key, store.get(stage, key)) for stage in STAGES for key in store.keys(stage))
    return {(stage, key): (each.created, each.seconds) for stage, key, each in found}


def begin(place: Path) -> Any:
    """Start ``orch sweep`` in ``place``, a process of its own with two workers."""
    place.mkdir(exist_ok=True)
    (place / "search.yaml").write_text(SEARCH)
    return start("sweep", "search.yaml", "apollo-smoke", *PLAN, "--out", "out", cwd=place)


def finish(driver: Any) -> str:
    """Return what a search that comes to its end says."""
    said: str = driver.communicate()[0]
    assert driver.returncode == 0, said
    return said


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.timeout(3600)
def test_a_killed_search_goes_on_and_equals_the_undisturbed_one(tmp_path: Path) -> None:
    assert len(SEARCH.splitlines()) <= 15
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    finish(begin(undisturbed))

    driver = begin(killed)
    try:  # in the midst of the thirteenth trial
        wait_for(lambda: any(line.get("trial") == 12 for line in lines(killed)), driver, 1800)
    finally:
        kill_all(driver)
    before, told = made(killed), lines(killed)
    ended = [line["trial"] for line in told if "state" in line]
    assert 10 <= len(ended) <= 12 and len(before) < len(made(undisturbed))
    assert not below(driver.pid) and driver.returncode == -signal.SIGKILL
    said = finish(begin(killed))
    assert f"trials: 30, {len(ended)} ended before, {30 - len(ended)} to run" in said
    assert "0 to train or unlearn" in said

    after = made(killed)
    assert {name: after[name] for name in before} == before  # nothing was made again
    assert after.keys() == made(undisturbed).keys()
    assert lines(killed)[: len(told)] == told
    for place in (undisturbed, killed):
        ends = Counter(line["trial"] for line in lines(place) if "state" in line or "repeats" in line)
        rungs = Counter((line["trial"], line["parts"]) for line in lines(place) if "parts" in line)
        assert set(ends) == set(range(30)) and {*ends.values(), *rungs.values()} == {1}
    results = [json.loads((place / "out" / "result.json").read_text()) for place in (undisturbed, killed)]
    for result in results:
        for trial in result["search"]["trials"]:
            del trial["seconds"]
    assert results[0]["search"] == results[1]["search"]
    assert results[0]["table"] == results[1]["table"]
    scores = [(place / "out" / "scores.parquet").read_bytes() for place in (undisturbed, killed)]
    assert scores[0] == scores[1]
    states = Counter(trial["state"] for trial in results[0]["search"]["trials"])
    assert states["stopped"] > states["done"] > 0
