"""Canaries: what is planted, where scores rank them, and the orthogonal gradient that mode pinv cannot see."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from gnq_brute_force import by_svd, with_ridge
from torch import nn

from audits.data.catalogue import load
from audits.data.tensors import TensorSet
from audits.disclosure import uniqueness_from_gram
from audits.disclosure.accumulate import Trace, fit_traced
from audits.disclosure.canaries import KINDS, canary_ranks, planted
from audits.disclosure.gram import gradients
from audits.disclosure.rankings import RANKINGS
from audits.disclosure.scores import MODES
from audits.errors import BadInput
from audits.models import make_model
from audits.training.recipe import Recipe

SEED = 3
SIDE, CLASSES, POINTS = 4, 3, 80


def images(points: int = POINTS, dtype: torch.dtype = torch.float64) -> TensorSet:
    """Return noisy images of three classes whose first pixel is 0 in every one."""
    generator = torch.Generator().manual_seed(SEED)
    y = torch.arange(points) % CLASSES
    shape = torch.rand(CLASSES, 1, SIDE, SIDE, generator=generator)
    x = (0.5 * shape[y] + 0.5 * torch.rand(points, 1, SIDE, SIDE, generator=generator)).to(dtype)
    if dtype == torch.uint8:
        x = torch.randint(1, 256, x.shape, generator=generator, dtype=dtype)
    x[..., 0, 0] = 0
    return TensorSet(x, y)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.uint8])
def test_each_canary_is_what_its_name_says_and_nothing_else_changes(dtype: torch.dtype) -> None:
    data = images(dtype=dtype)
    before, high = data.x.clone(), 255 if dtype == torch.uint8 else 1
    found, rows = planted(data, KINDS, SEED)
    assert torch.equal(data.x, before)
    assert found.x.dtype == dtype
    assert len(set(rows.values())) == len(KINDS)
    others = [row for row in range(POINTS) if row not in rows.values()]
    assert torch.equal(found.x[others], before[others])
    assert (found.y != data.y).nonzero().flatten().tolist() == [rows["wrong_label"]]
    assert torch.equal(found.x[rows["wrong_label"]], before[rows["wrong_label"]])
    board = (np.add.outer(range(SIDE), range(SIDE)) % 2 * high).tolist()  # 0 first, so the first pixel stays unused
    assert found.x[rows["checkerboard"], 0].tolist() == board
    assert found.x[rows["corner"], 0].tolist() == [[high, 0, 0, 0]] + [[0] * SIDE] * 3
    noise = found.x[rows["noise"], 0].double().flatten() / high
    assert noise[0] == 0
    assert len(noise[1:].unique()) > 10
    assert 0.3 < float(noise[1:].mean()) < 0.7
    alone, again = planted(data, ("checkerboard",), SEED)
    assert again == {"checkerboard": rows["checkerboard"]}
    assert (alone.x != before).flatten(1).any(1).nonzero().flatten().tolist() == [rows["checkerboard"]]


def test_a_corner_can_be_made_unused_in_all_others() -> None:
    data = images()
    found, rows = planted(TensorSet(data.x + 0.25, data.y), ("corner", "noise"), SEED, corner=2, value_range=(0, 1.25))
    patch = found.x[:, 0, :2, :2]
    assert patch.flatten(1).any(1).nonzero().flatten().tolist() == [rows["corner"]]
    assert patch[rows["corner"]].tolist() == [[1.25] * 2] * 2
    others = [row for row in range(POINTS) if row != rows["corner"]]
    assert (found.x[others][:, 0, 2:, 2:] > 0).all()


def test_an_image_that_a_canary_replaces_uses_no_pixel() -> None:
    data = images()
    rows = planted(data, KINDS, SEED)[1]
    data.x[rows["noise"], 0, 0, 0] = 1
    assert float(planted(data, ("corner", "noise"), SEED)[0].x[rows["corner"], 0, 0, 0]) == 1
    with pytest.raises(BadInput, match="every pixel is used"):
        planted(data, ("corner",), SEED)


def test_an_orthogonal_gradient_is_first_by_ridge_and_last_by_pinv() -> None:
    G = np.zeros((31, 9))
    G[:30, :8] = np.random.default_rng(SEED).normal(size=(30, 8))
    G[30, 8] = 1.0
    K, penalty = G @ G.T, 1e-4
    slow = {"ridge": with_ridge(G, penalty), "pinv": by_svd(G)}
    ridge, pinv = uniqueness_from_gram(K, "ridge", penalty, relative=False), uniqueness_from_gram(K, "pinv")
    np.testing.assert_allclose(ridge, slow["ridge"], rtol=1e-6)
    np.testing.assert_allclose(pinv, slow["pinv"], rtol=1e-6, atol=1e-20)
    assert ridge.argmax() == pinv.argmin() == 30
    np.testing.assert_allclose(ridge[30], 1 / penalty)  # ‖g‖²/λ, however much the others explain of each other
    assert ridge[:30].max() < 2
    assert pinv[30] < 1e-20 < pinv[:30].min()


def trace_of(model: nn.Module, data: TensorSet, ridge: float = 1e-3) -> Trace:
    recipe = Recipe(optimizer="sgd", learning_rate=0.2, epochs=12, batch_size=16)
    return fit_traced(model, data, recipe, seed=SEED, every=20, modes=MODES, ridge=ridge)


def test_in_a_linear_model_without_bias_an_unused_pixel_makes_the_whole_gradient_orthogonal() -> None:
    data, rows = planted(images(), ("corner",), SEED)
    row = rows["corner"]
    model = nn.Sequential(nn.Flatten(), nn.Linear(SIDE**2, CLASSES, bias=False, dtype=torch.float64))
    with torch.no_grad():
        model[1].weight.copy_(torch.linspace(-0.3, 0.3, SIDE**2 * CLASSES).view(CLASSES, -1))
    trace = trace_of(model, data, ridge=1e-4)
    G = gradients(model, data.x, data.y)
    assert float(G[row].norm()) > 1e-3
    assert not (G @ G[row]).index_fill(0, torch.tensor([row]), 0.0).any()
    # Of the 80 gradients the others span 30 dimensions only: 15 pixels and two degrees of freedom of three classes.
    assert np.linalg.matrix_rank(G.numpy()) == 31
    found = canary_ranks(trace, rows)
    assert {found[score]["corner"] for score in ("gnq_log", "gnq_sum", "gnq_final", "diagonal", "diagonal_final")} == {
        1
    }
    assert {found[score]["corner"] for score in ("pinv_log", "pinv_final")} == {POINTS}
    assert min(found[score]["corner"] for score in ("gradient_norm", "gradient_norm_log", "final_loss")) > 1


def test_in_a_deeper_model_only_the_weights_of_the_first_layer_are_orthogonal() -> None:
    data, rows = planted(images(), ("corner",), SEED)
    row = rows["corner"]
    model = make_model("mlp", {"hidden": [8]}).build((1, SIDE, SIDE), CLASSES, 1).double()
    G = gradients(model, data.x, data.y)
    others = [point for point in range(POINTS) if point != row]
    blocks = G.split([parameter.numel() for parameter in model.parameters()], dim=1)
    products = {
        name: block[others] @ block[row] for (name, _), block in zip(model.named_parameters(), blocks, strict=True)
    }
    assert [name for name, found in products.items() if not found.any()] == ["1.weight"]
    assert float(blocks[0][row].norm()) > 0
    assert len(products) == 4


def test_accumulated_diagonal_finds_the_corner_that_controls_do_not() -> None:
    data = load("fashion14")
    training, rows = planted(data.tensors(np.arange(200)), KINDS, SEED, corner=3)
    model = make_model("mlp", {"hidden": [16]}).build(data.shape, len(data.classes), 1)
    recipe = Recipe(epochs=20, batch_size=20)
    trace = fit_traced(model, training, recipe, seed=SEED, every=50, modes=("ridge", "diagonal"))
    found = canary_ranks(trace, rows)
    assert found["diagonal"]["corner"] == 1
    for control in ("gradient_norm_log", "loss_log", "gradient_norm", "final_loss"):
        assert found[control]["corner"] > 20, control


RANKS = {
    "trained": {
        "gnq_final": {"noise": (80, 400), "checkerboard": (150, 400), "wrong_label": (1, 20)},
        "diagonal_final": {"noise": (4, 400), "checkerboard": (40, 400), "wrong_label": (1, 40)},
        "gradient_norm": {"noise": (140, 400), "checkerboard": (180, 400), "wrong_label": (1, 120)},
        "final_loss": {"noise": (140, 400), "checkerboard": (180, 400), "wrong_label": (1, 120)},
    },
    "early": {
        "gnq_final": {"noise": (1, 30), "checkerboard": (1, 12), "wrong_label": (1, 25)},
        "diagonal_final": {"noise": (1, 8), "checkerboard": (1, 10), "wrong_label": (1, 120)},
        "gradient_norm": {"noise": (2, 80), "checkerboard": (8, 250), "wrong_label": (1, 200)},
        "final_loss": {"noise": (1, 220), "checkerboard": (8, 400), "wrong_label": (1, 40)},
    },
    "along": {
        "gnq_log": {"noise": (5, 180), "checkerboard": (60, 260), "wrong_label": (1, 8)},
        "gnq_sum": {"noise": (1, 80), "checkerboard": (1, 40), "wrong_label": (1, 8)},
        "diagonal": {"noise": (1, 50), "checkerboard": (1, 220), "wrong_label": (1, 20)},
        "gradient_norm_log": {"noise": (100, 400), "checkerboard": (180, 400), "wrong_label": (1, 100)},
        "gradient_norm_sum": {"noise": (40, 250), "checkerboard": (100, 330), "wrong_label": (1, 120)},
        "loss_log": {"noise": (80, 260), "checkerboard": (180, 400), "wrong_label": (1, 20)},
        "loss_sum": {"noise": (25, 250), "checkerboard": (140, 400), "wrong_label": (1, 20)},
    },
}
"""Seen → score → canary → lowest and highest rank of 400: what four draws of points and seeds gave, with slack."""


@pytest.mark.slow
def test_ranks_of_noise_checkerboard_and_wrong_label_at_one_model_and_accumulated() -> None:
    data = load("fashion14")
    training, rows = planted(data.tensors(np.arange(400)), KINDS, SEED, corner=2)
    model = make_model("mlp", {}).build(data.shape, len(data.classes), 1)
    trace = fit_traced(model, training, Recipe(epochs=30, batch_size=50), seed=SEED, every=30)
    first = replace(
        trace,
        steps=trace.steps[1:2],
        loss=trace.loss[1:2],
        squared_norm=trace.squared_norm[1:2],
        gnq={mode: gnq[1:2] for mode, gnq in trace.gnq.items()},
    )
    whole = canary_ranks(trace, rows)
    found = {"trained": whole, "early": canary_ranks(first, rows), "along": whole}
    off = [
        (seen, score, canary, rank)
        for seen, scores in RANKS.items()
        for score, canaries in scores.items()
        for canary, (low, high) in canaries.items()
        if not low <= (rank := found[seen][score][canary]) <= high
    ]
    assert not off, off
    # What the default rests on: looks along training find by ridge and diagonal what norms and the trained model hide.
    for canary in ("noise", "checkerboard"):
        early, along = found["early"], found["along"]
        assert early["gnq_final"][canary] < early["gradient_norm"][canary]
        assert along["diagonal"][canary] < along["gradient_norm_log"][canary]
        assert along["gnq_sum"][canary] < along["gradient_norm_sum"][canary]
        assert early["gnq_final"][canary] < found["trained"]["gnq_final"][canary]


def test_ranks_count_from_the_highest_and_ties_share() -> None:
    trace = Trace(
        steps=np.array([0, 6]),
        loss=np.array([[1.0, 2.0, 2.0, 0.0], [1.0, 2.0, 2.0, 9.0]]),
        squared_norm=np.ones((2, 4)),
        gnq={
            "ridge": np.array([[0.0, 0.0, 0.0, 1.0], [3.0, 2.0, 1.0, 0.0]]),
            "diagonal": np.array([[9.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, 3.0]]),
        },
        doubts=("", ""),
    )
    found = canary_ranks(trace, {"first": 0, "second": 1})
    assert set(found) == {*RANKINGS, "diagonal_final"} - {"in_batch", "pinv_log", "pinv_sum"}
    assert found["gnq_final"] == {"first": 1, "second": 2}
    assert found["final_loss"] == {"first": 4, "second": 2.5}
    assert found["gradient_norm"] == {"first": 2.5, "second": 2.5}
    assert found["diagonal_final"] == {"first": 4, "second": 3}
    assert found["diagonal"]["first"] == 1
    with pytest.raises(BadInput, match="canary 'x' is row 4; allowed: 0 to 3"):
        canary_ranks(trace, {"x": 4})


def test_accumulated_pinv_weighs_checkpoints_with_the_steps_they_stand_for() -> None:
    gnq = np.array([[15.0, 0.0], [0.0, 1.0], [0.0, 0.0]])  # 2 bits and ½ bit, over ½ and 4½ steps
    modes = dict.fromkeys(MODES, gnq)
    found = canary_ranks(Trace(np.array([0, 1, 9]), gnq, gnq, modes, ("", "", "")), {"short": 0, "long": 1})
    assert found["pinv_log"] == found["gnq_log"] == {"short": 2, "long": 1}
    assert found["pinv_final"] == {"short": 1.5, "long": 1.5}


def test_the_example_shows_every_score(capsys: pytest.CaptureFixture[str]) -> None:
    path = Path(__file__).resolve().parent.parent / "examples" / "gnq_canaries.py"
    spec = importlib.util.spec_from_file_location("gnq_canaries", path)
    assert spec and spec.loader
    example = importlib.util.module_from_spec(spec)
    sys.modules["gnq_canaries"] = example  # where its dataclass looks for the module
    spec.loader.exec_module(example)
    (run,) = example.main(["--seeds", "1", "--points", "30", "--epochs", "2", "--checkpoints", "2"])
    assert {*example.ACCUMULATED, *example.ONE_MODEL, "random"} == set(run.along)
    assert run.step == 1
    assert run.along["gnq_final"] != run.early["gnq_final"]
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(example.ACCUMULATED) + 2 * len(example.ONE_MODEL)
    assert all(len(row) == 2 + len(KINDS) for row in rows)


def test_what_cannot_be_planted_is_refused() -> None:
    data = images()
    bright = TensorSet(data.x + 0.1, data.y)
    with pytest.raises(BadInput, match="did you mean 'corner'"):
        planted(data, ("corners",))
    with pytest.raises(BadInput, match="name each kind once"):
        planted(data, ("noise", "noise"))
    with pytest.raises(BadInput, match="every pixel is used by some image; give corner=2"):
        planted(bright, ("corner",))
    with pytest.raises(BadInput, match="corner is 4; allowed: 0 to 3"):
        planted(data, ("corner",), corner=4)
    with pytest.raises(BadInput, match="all points have one label"):
        planted(TensorSet(data.x, torch.zeros_like(data.y)), ("wrong_label",))
    with pytest.raises(BadInput, match="canaries are images"):
        planted(TensorSet(data.x.flatten(1), data.y), ("noise",))
    with pytest.raises(BadInput, match="the number of points is 4; canaries need more than 4"):
        planted(images(4), ("noise",))
