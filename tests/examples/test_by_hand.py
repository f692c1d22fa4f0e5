"""The examples run as they stand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


@pytest.mark.slow
def test_apollo_by_hand_gives_an_auc_for_every_attack_that_it_names():
    path = Path(__file__).resolve().parents[2] / "examples" / "apollo_by_hand.py"
    spec = importlib.util.spec_from_file_location("apollo_by_hand", path)
    assert spec and spec.loader
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    found = example.main()
    assert set(found) == set(example.SHOWN) >= {"apollo", "random_directions", "single_query", "label_gap", "lira"}
    assert all(0.2 < value < 0.8 for value in found.values())
