"""Recipes are compared on equal points and seeds; which one is faster, no test asks."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from audits.training.recipe import Recipe
from benchmarks import recipes
from benchmarks.record import markers

ROOT = Path(__file__).resolve().parents[2]


def test_both_recipes_are_looked_at_behind_each_epoch(capsys: pytest.CaptureFixture[str]) -> None:
    recipes.main(["--quick"])
    record = json.loads(capsys.readouterr().out)
    assert record["command"] == "python -m benchmarks.recipes --quick"
    first, second = record["rows"]
    assert second["fast"] is None and all(0 <= row["paper"][0] <= 1 for row in (first, second))
    assert first["gain"][0] == pytest.approx(first["fast"][0] - first["paper"][0], abs=1e-3)
    assert "| 2 |" in recipes.tables(record)
    assert markers(record["section"])[0] in (ROOT / "docs" / "results" / "benchmarks.md").read_text()


def test_looking_changes_no_training() -> None:
    once, twice = (recipes.accuracies(Recipe(epochs=epochs), 60, 0) for epochs in (1, 2))
    assert len(once) == 1 and len(twice) == 2 and once[0] == twice[0]


def test_an_interval_is_that_of_student() -> None:
    mean, half = recipes.interval(np.array([0.1, 0.2, 0.3]))
    assert (mean, half) == (0.2, pytest.approx(4.3027 * 0.1 / 3**0.5, rel=1e-3))


def test_options_that_cannot_be_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        recipes.main(["--seeds", "1"])
    assert "give 2 or more" in capsys.readouterr().err
