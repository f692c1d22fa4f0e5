"""Canaries: what is planted, where scores rank them, and the orthogonal gradient that mode pinv cannot see."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from statistics import median
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import nn

from audits.data.catalogue import load
from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.gnq.canaries import CANARIES, canary_ranks, planted
from audits.gradients.gram import gradients
from audits.models import make_model
from audits.training.recipe import Recipe
from audits.uniqueness import uniqueness_from_gram
from audits.uniqueness.accumulate import Trace, fit_traced
from audits.uniqueness.rankings import RANKINGS
from audits.uniqueness.scores import MODES
from tests.cases.brute_force_uniqueness import by_svd, with_ridge

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


def canaries_example() -> ModuleType:
    """Return examples/gnq_canaries.py as a module."""
    path = Path(__file__).resolve().parents[3] / "examples" / "gnq_canaries.py"
    spec = importlib.util.spec_from_file_location("gnq_canaries", path)
    assert spec and spec.loader
    example = importlib.util.module_from_spec(spec)
    sys.modules["gnq_canaries"] = example  # where its dataclass looks for the module
    spec.loader.exec_module(example)
    return example


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.uint8])
def test_each_canary_is_what_its_name_says_and_nothing_else_changes(dtype: torch.dtype) -> None:
    data = images(dtype=dtype)
    before, high = data.x.clone(), 255 if dtype == torch.uint8 else 1
    found, rows = planted(data, CANARIES, SEED)
    assert torch.equal(data.x, before)
    assert found.x.dtype == dtype
    assert len(set(rows.values())) == len(CANARIES)
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
    rows = planted(data, CANARIES, SEED)[1]
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


@pytest.mark.long
def test_diagonal_puts_the_corner_in_a_small_network_first_then_ridge_pinv_and_norms() -> None:
    data = load("fashion14")
    training, rows = planted(data.tensors(np.arange(200)), CANARIES, SEED, corner=3)
    model = make_model("mlp", {"hidden": [16]}).build(data.shape, len(data.classes), 1)
    recipe = Recipe(epochs=20, batch_size=20)
    trace = fit_traced(model, training, recipe, seed=SEED, every=50, modes=MODES)
    corner = {score: ranks["corner"] for score, ranks in canary_ranks(trace, rows).items()}
    assert corner["diagonal"] == corner["diagonal_final"] == 1
    for ridge, pinv, norm, loss in (
        ("gnq_log", "pinv_log", "gradient_norm_log", "loss_log"),
        ("gnq_sum", "pinv_sum", "gradient_norm_sum", "loss_sum"),
        ("gnq_final", "pinv_final", "gradient_norm", "final_loss"),
    ):
        assert 1 < corner[ridge] <= 25
        assert corner[ridge] < corner[pinv] <= 100
        assert corner[ridge] < corner[loss] <= 150
        assert corner[norm] > 130


RANKS = {
    "along": {
        "gnq_log": ((10, 150), (30, 210), (1, 12), (60, 220)),
        "gnq_sum": ((1, 30), (1, 15), (1, 12), (40, 140)),
        "diagonal": ((1, 50), (1, 170), (1, 15), (1, 3)),
        "pinv_log": ((35, 235), (110, 310), (1, 12), (120, 280)),
        "pinv_sum": ((80, 280), (150, 350), (1, 40), (200, 320)),
        "gradient_norm_log": ((140, 330), (190, 370), (1, 90), (260, 390)),
        "gradient_norm_sum": ((70, 190), (90, 250), (1, 90), (320, 400)),
        "loss_log": ((110, 260), (160, 340), (1, 50), (80, 210)),
        "loss_sum": ((40, 240), (130, 320), (1, 40), (50, 190)),
    },
    "early": {
        "gnq_final": ((1, 8), (1, 8), (1, 12), (15, 80)),
        "diagonal_final": ((1, 10), (1, 10), (1, 70), (1, 3)),
        "pinv_final": ((1, 10), (1, 12), (1, 30), (60, 260)),
        "gradient_norm": ((1, 40), (1, 110), (1, 140), (350, 400)),
        "final_loss": ((1, 40), (1, 200), (1, 15), (10, 70)),
    },
    "trained": {
        "gnq_final": ((150, 350), (190, 390), (1, 50), (170, 330)),
        "diagonal_final": ((10, 210), (90, 290), (1, 50), (1, 70)),
        "pinv_final": ((120, 320), (160, 350), (1, 40), (180, 350)),
        "gradient_norm": ((190, 390), (200, 400), (1, 130), (220, 370)),
        "final_loss": ((200, 400), (200, 400), (1, 120), (180, 330)),
    },
}
"""Seen → score → lowest and highest rank of 400 for each of ``CANARIES``: medians of three seeds, with slack.

Of all choices of three of ten seeds at least 93 in 100 keep within each, 82 in the three cells that differ most: noise
by pinv along training and by diagonal in the trained model. None is wider than half of the ranks.
"""

PATTERNS = ("noise", "checkerboard")
ALONG = [("along", score) for score in RANKS["along"]]
TRAINED = [("trained", score) for score in ("gnq_final", "pinv_final", "gradient_norm", "final_loss")]
ORDERS = [
    # Early looks show by every mode of GNQ what the trained model hides; so do sums along training, by ridge.
    *((("early", mode), TRAINED, PATTERNS) for mode in ("gnq_final", "diagonal_final", "pinv_final")),
    (("along", "gnq_log"), TRAINED, (*PATTERNS, "corner")),
    (("along", "gnq_sum"), TRAINED, (*PATTERNS, "corner")),
    # The plain sum by ridge beats the logarithm, and plain sums of its controls: a plain sum alone does not do it.
    (("along", "gnq_sum"), [each for each in ALONG if each[1] not in ("gnq_sum", "diagonal")], PATTERNS),
    (("along", "diagonal"), [("along", "pinv_sum"), ("along", "gradient_norm_log")], PATTERNS),
    (("early", "gnq_final"), [("early", "gradient_norm")], ("checkerboard",)),
    # Diagonal finds the corner before all others do; ridge ranks it above pinv and above the norm.
    (("along", "diagonal"), [each for each in ALONG if each[1] != "diagonal"] + TRAINED, ("corner",)),
    (("early", "diagonal_final"), [("early", "gnq_final"), ("early", "final_loss")], ("corner",)),
    (("early", "gnq_final"), [("early", "pinv_final")], ("corner",)),
    (("early", "pinv_final"), [("early", "gradient_norm")], ("corner",)),
    (("along", "gnq_log"), [("along", "pinv_log"), ("along", "gradient_norm_log")], ("corner",)),
    (("along", "gnq_sum"), [("along", "pinv_sum"), ("along", "gradient_norm_sum")], ("corner",)),
    # At one early look a wrong label is less visible by diagonal than by ridge.
    (("early", "gnq_final"), [("early", "diagonal_final")], ("wrong_label",)),
]
"""What ranks higher, than what, for which canaries: in each of ten seeds that were looked at, three of them here."""


@pytest.mark.long
@pytest.mark.slow
def test_ranks_of_all_canaries_by_every_score_early_accumulated_and_trained() -> None:
    example, seeds = canaries_example(), range(3)
    runs = [example.run(seed, 400, Recipe(epochs=30, batch_size=50), 8) for seed in seeds]
    found = {
        "along": [run.along for run in runs],
        "early": [run.early for run in runs],
        "trained": [run.along for run in runs],
    }
    assert all(set(RANKS[seen]) == set(example.ONE_MODEL) for seen in ("early", "trained"))
    assert set(RANKS["along"]) == set(example.ACCUMULATED)
    off = [
        (seen, score, canary, rank)
        for seen, scores in RANKS.items()
        for score, bounds in scores.items()
        for canary, (low, high) in zip(CANARIES, bounds, strict=True)
        if not low <= (rank := median(ranks[score][canary] for ranks in found[seen])) <= high
    ]
    assert not off, off
    swapped = [
        (seed, above, below, canary)
        for above, others, canaries in ORDERS
        for below in others
        for canary in canaries
        for seed in seeds
        if not found[above[0]][seed][above[1]][canary] < found[below[0]][seed][below[1]][canary]
    ]
    assert not swapped, swapped


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
    unseen = {"in_batch", "pinv_log", "pinv_sum", "twin_loss", "held_out_loss"}
    assert set(found) == {*RANKINGS, "diagonal_final"} - unseen
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
    example = canaries_example()
    (run,) = example.main(["--seeds", "1", "--points", "30", "--epochs", "2", "--checkpoints", "2"])
    assert {*example.ACCUMULATED, *example.ONE_MODEL, "random"} == set(run.along)
    assert run.step == 1
    assert run.along["gnq_final"] != run.early["gnq_final"]
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    assert len(rows) == 1 + len(example.ACCUMULATED) + 2 * len(example.ONE_MODEL)
    assert all(len(row) == 2 + len(CANARIES) for row in rows)


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
