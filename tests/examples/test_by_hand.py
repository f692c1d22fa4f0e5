"""The examples run as they stand."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import pytest

from audits.apollo import SearchSettings
from audits.training import Recipe


def example_module():
    path = Path(__file__).resolve().parents[2] / "examples" / "apollo_by_hand.py"
    spec = importlib.util.spec_from_file_location("apollo_by_hand", path)
    assert spec and spec.loader
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example


@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=(pytest.mark.long, pytest.mark.slow))])
def test_apollo_by_hand_gives_an_auc_for_every_attack_that_it_names(whole, monkeypatch):
    example = example_module()
    if not whole:
        few = {"shadows": 8, "shadow_pool": 3_000, "train_size": 200, "target_pool": 200, "test_pool": 200}
        monkeypatch.setattr(example, "SPLIT", replace(example.SPLIT, **few, candidates_forget=20, candidates_unseen=20))
        monkeypatch.setattr(example, "SearchSettings", lambda: SearchSettings(steps=3))
        monkeypatch.setattr(example, "Recipe", lambda: Recipe(epochs=4))
    found = example.main()
    assert set(found) == set(example.SHOWN) >= {"apollo", "random_directions", "single_query", "label_gap", "lira"}
    assert all(0.2 < value < 0.8 for value in found.values())
