"""Recipes are compared on equal points and seeds; which one is faster, no test asks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from audits.data.catalogue import load
from audits.training.recipe import Recipe
from benchmarks import recipes
from benchmarks.record import markers

ROOT = Path(__file__).resolve().parents[2]


FEW = "--data digits --test 20 --points 40 --epochs 1 --longer 2 --seeds 2"


@pytest.mark.parametrize("said", [FEW, pytest.param("--quick", marks=pytest.mark.long)])
def test_both_recipes_are_looked_at_behind_each_epoch(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command of a record names what is not as usual."""
    recipes.main(said.split())
    record = json.loads(capsys.readouterr().out)
    assert record["command"] == f"python -m benchmarks.recipes {said}"
    first, second = record["rows"]
    assert second["fast"] is None and all(0 <= row["paper"][0] <= 1 for row in (first, second))
    assert first["gain"][0] == pytest.approx(first["fast"][0] - first["paper"][0], abs=1e-3)
    assert "| 2 |" in recipes.tables(record)
    assert record["last"][0] == pytest.approx(first["fast"][0] - second["paper"][0], abs=1e-3)
    assert set(record["seconds"]) == {"paper", "fast"} and min(record["seconds"].values()) > 0
    for section in (record["section"], "recipes fashion14 cuda"):
        assert markers(section)[0] in (ROOT / "docs" / "results" / "benchmarks.md").read_text()


def test_looking_changes_no_training() -> None:
    case = recipes.Case(load("digits"), points=60, test=30, width=8, device="cpu")
    (once, _), (twice, _) = (recipes.accuracies(case, Recipe(epochs=epochs), 0) for epochs in (1, 2))
    assert len(once) == 1 and len(twice) == 2 and once[0] == twice[0]


def test_an_interval_is_that_of_student() -> None:
    mean, half = recipes.interval(np.array([0.1, 0.2, 0.3]))
    assert (mean, half) == (0.2, pytest.approx(4.3027 * 0.1 / 3**0.5, rel=1e-3))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("--seeds 1", "give 2 or more"),
        ("--test 0", "give 1 or more"),
        ("--data digits --points 1700 --test 98", "digits has 1797 in all"),
        ("--data cats", "unknown data set 'cats'"),
    ],
)
def test_options_that_cannot_be_are_refused(options: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        recipes.main(options.split())
    assert left.value.code == 2
    assert says in capsys.readouterr().err
