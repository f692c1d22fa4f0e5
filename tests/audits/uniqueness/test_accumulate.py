"""Scores of points under one model and along training, against a model of two parameters worked out by hand."""

from __future__ import annotations

import dataclasses
from dataclasses import replace

import numpy as np
import pytest
import torch

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.models import make_model
from audits.training.fit import fit
from audits.training.recipe import Recipe
from audits.uniqueness import gradient_uniqueness
from audits.uniqueness.accumulate import Trace, fit_traced, steps_of
from audits.uniqueness.bits import bits_upper, log_uniqueness
from audits.uniqueness.rankings import RANKINGS, readable
from audits.uniqueness.scores import MODES, point_scores
from tests.audits.uniqueness.two_parameters import POINTS, RECIPE, line, trained_by_hand, two_parameters
from tests.cases.brute_force_uniqueness import Floats, with_ridge
from tests.cases.families import as_one, thinned
from tests.cases.layer_models import case

SEED = 4


def relative_ridge(G: Floats) -> Floats:
    return with_ridge(G, 1e-3 * np.square(G).sum(1).mean())


def by_diagonal(G: Floats) -> Floats:
    squares, found = np.square(G), np.zeros(len(G))
    for j, own in enumerate(squares):
        found[j] = np.sum(own / (np.delete(squares, j, 0).sum(0) + 1e-3 * squares.mean()))
    return found


@pytest.mark.parametrize("mode", MODES)
def test_uniqueness_of_a_model_is_that_of_its_gradients(mode: str) -> None:
    G = trained_by_hand(SEED).gradients[0]
    slow = {"ridge": relative_ridge, "pinv": lambda G: with_ridge(G, 1e-13), "diagonal": by_diagonal}[mode](G)
    np.testing.assert_allclose(gradient_uniqueness(two_parameters(), line(), mode), slow, rtol=1e-6)


def test_point_scores_are_what_each_function_says_alone() -> None:
    model, x, y = case("linear")
    data = TensorSet(x, y)
    scores = point_scores(model, data, MODES)
    for mode in MODES:
        np.testing.assert_allclose(scores.gnq[mode], gradient_uniqueness(model, data, mode), rtol=1e-9)
    alone = point_scores(model, data, ("diagonal",))
    assert list(alone.gnq) == ["diagonal"]
    np.testing.assert_allclose(alone.squared_norm, scores.squared_norm, rtol=1e-12)
    absolute = point_scores(model, data, ("ridge", "diagonal"), ridge=0.5, relative=False)
    for mode in ("ridge", "diagonal"):
        alone_absolute = gradient_uniqueness(model, data, mode, ridge=0.5, relative=False)
        np.testing.assert_allclose(absolute.gnq[mode], alone_absolute, rtol=1e-9)


def test_no_gradient_at_all_is_no_uniqueness() -> None:
    data = TensorSet(torch.zeros(4, 1, dtype=torch.float64), torch.tensor([0, 1, 0, 1]))
    scores = point_scores(two_parameters(), data, MODES)
    assert not scores.squared_norm.any()
    assert not any(gnq.any() for gnq in scores.gnq.values())
    np.testing.assert_allclose(scores.loss, np.log(2))


def test_checkpoints_are_worked_out_by_hand() -> None:
    hand, model = trained_by_hand(SEED), two_parameters()
    trace = fit_traced(model, line(), RECIPE, seed=SEED, every=4, modes=MODES)
    assert trace.steps.tolist() == [0, 4, 6]
    assert steps_of(RECIPE, POINTS) == len(hand.rows) == 6  # the seventh point joins the second batch of an epoch
    assert trace.doubts == ("", "", "")
    assert trace.in_batch is None
    np.testing.assert_allclose(trace.weights, [2, 3, 1])
    np.testing.assert_allclose(trace.loss, np.stack(hand.losses)[trace.steps], rtol=1e-9)
    G = [hand.gradients[step] for step in trace.steps]
    np.testing.assert_allclose(trace.squared_norm, [np.square(rows).sum(1) for rows in G], rtol=1e-9)
    np.testing.assert_allclose(trace.gnq["ridge"], [relative_ridge(rows) for rows in G], rtol=1e-6)
    np.testing.assert_allclose(trace.gnq["diagonal"], [by_diagonal(rows) for rows in G], rtol=1e-9)


def test_in_batch_is_the_sum_over_the_steps_of_a_point_among_its_batch() -> None:
    hand = trained_by_hand(SEED)
    log, total, steps = np.zeros(POINTS), np.zeros(POINTS), np.zeros(POINTS)
    for rows, gradients in zip(hand.rows, hand.gradients, strict=False):
        gnq = relative_ridge(gradients[rows])
        log[rows] += np.log2(1 + gnq) / 2
        total[rows] += gnq
        steps[rows] += 1
    trace = fit_traced(two_parameters(), line(), RECIPE, seed=SEED, every=100, modes=("ridge",), in_batch=True)
    assert trace.steps.tolist() == [0, 6]
    assert trace.in_batch is not None
    np.testing.assert_array_equal(trace.in_batch.steps, steps)
    np.testing.assert_allclose(trace.in_batch.log["ridge"], log, rtol=1e-6)
    np.testing.assert_allclose(trace.in_batch.total["ridge"], total, rtol=1e-6)


def test_other_points_than_those_trained_on_can_be_watched() -> None:
    data = line()
    others = TensorSet(data.x[:3] + 1, data.y[:3])
    model = two_parameters()
    trace = fit_traced(model, data, RECIPE, seed=SEED, every=3, points=others)
    assert trace.loss.shape == (3, 3)
    np.testing.assert_allclose(trace.gnq["ridge"][-1], gradient_uniqueness(model, others), rtol=1e-9)


@pytest.mark.parametrize("in_batch", thinned((False, True), (False,)))
def test_watching_changes_no_bit_of_the_model(in_batch: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(256, (21, 1, 4, 4), generator=generator, dtype=torch.uint8)
    data = TensorSet(x, torch.arange(21) % 3)
    recipe = Recipe(epochs=2, batch_size=5, augment_shift=1, flip=True, schedule="cosine")
    build = make_model("mlp", {"hidden": [6], "batch_norm": True, "dropout": 0.3}).build
    plain = fit(build((1, 4, 4), 3, 1), data, recipe, seed=2)
    watched = build((1, 4, 4), 3, 1)
    reports: list[object] = []
    torch.manual_seed(99)
    state = torch.random.get_rng_state()
    trace = fit_traced(
        watched, data, recipe, seed=2, every=3, in_batch=in_batch, observers=(reports.append,), modes=MODES
    )
    assert torch.equal(state, torch.random.get_rng_state())
    assert len(reports) == 2
    assert not watched.training
    for (name, one), other in zip(plain.state_dict().items(), watched.state_dict().values(), strict=True):
        assert torch.equal(one, other), name
    assert trace.steps.tolist() == [0, 3, 6, 8]  # a batch of the twenty-first point joins the fourth
    np.testing.assert_allclose(trace.gnq["ridge"][-1], gradient_uniqueness(plain, data), rtol=1e-9)


def test_one_checkpoint_says_what_the_model_says() -> None:
    model = two_parameters()
    gnq = gradient_uniqueness(model, line())
    trace = fit_traced(model, line(), replace(RECIPE, epochs=0), seed=SEED, every=1)
    assert trace.steps.tolist() == [0]
    np.testing.assert_allclose(RANKINGS["gnq_log"](trace, 0), np.log2(1 + gnq) / 2, rtol=1e-12)
    np.testing.assert_array_equal(RANKINGS["gnq_sum"](trace, 0), RANKINGS["gnq_final"](trace, 0))


def two_checkpoints() -> Trace:
    """Return three checkpoints of two points, at steps 0, 2 and 6: weights 1, 3, 2."""
    return Trace(
        steps=np.array([0, 2, 6]),
        loss=np.array([[0.0, 1.0], [0.0, 3.0], [7.0, 0.0]]),
        squared_norm=np.array([[3.0, 0.0], [1.0, 1.0], [0.0, 15.0]]),
        gnq={
            "ridge": np.array([[3.0, 0.0], [0.0, 63.0], [15.0, 0.0]]),
            "diagonal": np.array([[0.0, 3.0], [3.0, 0.0], [0.0, 0.0]]),
            "pinv": np.array([[0.0, 15.0], [3.0, 0.0], [0.0, 3.0]]),
        },
        doubts=("", "", ""),
        twin_loss=np.array([2.0, 5.0]),
        held_out_loss=np.array([3.0, 4.0]),
    )


@pytest.mark.parametrize("name", ["twin_loss", "held_out_loss"])
def test_the_rankings_of_other_models_ask_for_them(name: str) -> None:
    trace = dataclasses.replace(two_checkpoints(), twin_loss=None, held_out_loss=None)
    assert not readable(name, trace) and readable("gnq_log", trace)
    with pytest.raises(BadInput, match="which this trace does not hold"):
        RANKINGS[name](trace, 0)


def test_the_ranking_within_batches_asks_for_what_was_seen_there() -> None:
    with pytest.raises(BadInput, match="trace with in_batch=True and mode ridge"):
        RANKINGS["in_batch"](two_checkpoints(), 0)


SUMS = [
    ("gnq_log", [1 * 1 + 2 * 2, 3 * 3]),
    ("gnq_sum", [1 * 3 + 2 * 15, 3 * 63]),
    ("gnq_final", [15, 0]),
    ("diagonal", [3 * 1, 1 * 1]),
    ("loss_log", [2 * 3, 1 * 1 + 3 * 2]),
    ("gradient_norm_log", [1 * 2 + 3 * 1, 3 * 1 + 2 * 4]),
    ("loss_sum", [2 * 7, 1 * 1 + 3 * 3]),
    ("gradient_norm_sum", [1 * 3 + 3 * 1, 3 * 1 + 2 * 15]),
    ("pinv_log", [3 * 1, 1 * 2 + 2 * 1]),
    ("pinv_sum", [3 * 3, 1 * 15 + 2 * 3]),
    ("final_loss", [7, 0]),
    ("gradient_norm", [0, 15]),
    ("twin_loss", [2, 5]),
    ("held_out_loss", [3, 4]),
]


@as_one("name, scores", SUMS)
def test_rankings_are_sums_over_steps(name: str, scores: list[float]) -> None:
    np.testing.assert_allclose(RANKINGS[name](two_checkpoints(), 0), scores, rtol=1e-12)


def test_every_ranking_is_tested() -> None:
    tested = {name for name, _ in SUMS}
    assert tested | {"random", "in_batch"} == set(RANKINGS)


def test_the_score_that_ranks_is_not_clamped_as_the_bound_is() -> None:
    trace = two_checkpoints()
    bound = bits_upper(trace.gnq["ridge"], trace.weights)
    np.testing.assert_array_equal(bound, [1, 1])
    score = RANKINGS["gnq_log"](trace, 0)
    np.testing.assert_allclose(score, [5, 9], rtol=1e-12)
    np.testing.assert_array_equal(np.minimum(score, 1), bound)
    np.testing.assert_allclose(score, log_uniqueness(trace.gnq["ridge"], trace.weights))


def test_a_doubtful_rank_is_told_and_not_raised() -> None:
    data = TensorSet(torch.tensor([[1.0], [1.0 + 2e-6]], dtype=torch.float64), torch.tensor([0, 0]))
    model = torch.nn.Linear(1, 2).double()
    with torch.no_grad():
        model.weight.fill_(0.1)
        model.bias.zero_()
    assert "eigenvalues" in point_scores(model, data, ("pinv",)).doubt
    with pytest.raises(BadInput, match="rank of K is not certain"):
        gradient_uniqueness(model, data, "pinv")


def test_what_cannot_be_traced_is_refused() -> None:
    model, data = two_parameters(), line()
    private = Recipe(noise_multiplier=1.0, max_grad_norm=1.0)
    with pytest.raises(BadInput, match="recipe is private"):
        fit_traced(model, data, private, seed=0, every=1)
    with pytest.raises(BadInput, match="every is 0"):
        fit_traced(model, data, RECIPE, seed=0, every=0)
    with pytest.raises(BadInput, match="did you mean 'ridge'"):
        fit_traced(model, data, RECIPE, seed=0, every=1, modes=("rigde",))
    with pytest.raises(BadInput, match="reads mode 'diagonal', the trace has ridge"):
        RANKINGS["diagonal"](fit_traced(model, data, RECIPE, seed=0, every=9, modes=("ridge",)), 0)
    with pytest.raises(BadInput, match="did you mean 'gnq_log'"):
        RANKINGS["gnq_lag"]
