"""The two-dimensional example: what its regions mean, and that it draws them."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from audits.apollo.evidence import SearchSettings
from audits.data.toy2d import make
from audits.training.recipe import Recipe
from orchestrator.kinds import load_plan


@pytest.fixture(scope="module")
def example():
    path = Path(__file__).resolve().parents[2] / "examples" / "apollo_toy2d.py"
    spec = importlib.util.spec_from_file_location("apollo_toy2d", path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Right(nn.Module):
    """Class 0 where the first coordinate is above ``border``, else class 1."""

    def __init__(self, border: float) -> None:
        super().__init__()
        self.border = border

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.stack([x[:, 0] - self.border, self.border - x[:, 0]], dim=1)


@pytest.mark.parametrize(("unlearned", "retrained", "side"), [(0.0, 0.5, 1), (0.5, 0.0, 2)])
def test_regions_are_the_definitions_of_under_and_over(example, unlearned, retrained, side):
    x = torch.zeros(1, 2)
    scene = example.Scene(Right(0.0), Right(unlearned), Right(retrained), x, x[:, 0], np.ones(1, bool), x[None, None])
    points = torch.tensor([[0.25, 0.1], [0.75, 0.1], [-0.25, 0.1], [0.25, 2.0]])
    np.testing.assert_array_equal(example.regions(scene, points), [side, 0, 0, 0])


@pytest.mark.long
def test_the_example_draws_a_short_play(example, tmp_path, monkeypatch):
    monkeypatch.setattr(example, "LAYERS", {"hidden": (32, 32), "batch_norm": True})
    few = replace(example.SPLIT, shadows=8)
    scene = example.play(few, recipe=Recipe(learning_rate=1e-3, epochs=2), search=SearchSettings(epsilon=0.05, steps=3))
    assert scene.paths.shape == (40, 2, 3, 2)
    radii = (scene.paths - scene.x[:, None, None]).norm(dim=-1)
    shells = torch.arange(1, 4) * 0.05
    assert (radii <= shells + 1e-5).all() and (radii >= shells - 0.05 - 1e-5).all(), "x' is not clipped to [0, 1]"
    found = example.main(tmp_path / "map.png", scene, grid=24)
    assert set(found) == {"UNDER", "OVER"} and (tmp_path / "map.png").stat().st_size > 20_000


def test_the_plan_is_the_paper_s_example(example):
    plan = load_plan("apollo-toy2d")
    hidden = tuple(plan.model.settings["hidden"])
    assert (plan.split.train_size, plan.split.forget, hidden) == (200, 0.1, example.LAYERS["hidden"])
    built = plan.model.architecture().build((2,), 4, seed=0)
    assert sum(isinstance(part, nn.Linear) for part in built.modules()) == 12
    assert sum(isinstance(part, nn.BatchNorm1d) for part in built.modules()) == 11
    assert plan.recipe == example.RECIPE
    assert make(plan.split.target_pool + plan.split.shadow_pool + plan.split.test_pool).value_range is None
