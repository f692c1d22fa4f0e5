"""Confidence from distances: maps against slow forms, pairs without candidates, ranks that survive a rising map."""

import numpy as np
import pytest
from scipy.special import expit, logit

from audits.errors import BadInput
from audits.signals.loss import log_loss
from audits.tmia.p_values import rank_p
from audits.tmia.reconstruction import Pairs, fit, fit_isotonic, fit_logistic, fit_polynomial, make_pairs
from tests.cases.families import as_one

NAMES = ("logistic", "isotonic", "polynomial")
POINTS, CANDIDATES = np.arange(100, 112), np.arange(40)


def toy(seed, count=200, noise=0.05, shift=-1.0, slope=3.0):
    """Signed distances of a model with linear logits, the confidence blurred on the logit's scale."""
    rng = np.random.default_rng(seed)
    d = rng.normal(0.5, 1.0, count)
    return Pairs(d, expit(shift + slope * d + noise * rng.normal(size=count)), 0, "reference")


def test_reference_pairs_are_one_a_model_and_point_and_drop_what_is_not_finite():
    rng = np.random.default_rng(0)
    d, c = rng.normal(size=(5, 12)), rng.random((5, 12))
    d[0, 0], d[1, 1], c[2, 2], c[3, 3], d[3, 3] = np.nan, np.inf, np.nan, np.inf, np.nan
    found = make_pairs("reference", d, c, POINTS, CANDIDATES)
    slow = [(d[i], c[i]) for i in np.ndindex(5, 12) if np.isfinite(d[i]) and np.isfinite(c[i])]
    np.testing.assert_array_equal(np.stack([found.distance, found.confidence], axis=1), slow)
    assert (found.dropped, found.source) == (4, "reference")


def test_paper_pairs_join_the_targets_distance_with_the_mean_confidence_of_reference_models():
    rng = np.random.default_rng(1)
    d, c = rng.normal(size=12), rng.random((5, 12))
    d[0], c[1, 1], c[:, 2] = np.nan, np.nan, np.nan
    found = make_pairs("paper", d, c, POINTS, CANDIDATES)
    slow = [(d[k], np.mean([v for v in c[:, k] if np.isfinite(v)])) for k in range(12) if k not in (0, 2)]
    np.testing.assert_allclose(np.stack([found.distance, found.confidence], axis=1), slow, rtol=0, atol=1e-15)
    assert (found.dropped, found.source) == (2, "paper")


def test_pairs_of_means_have_the_minimum_of_all_pairs():
    rng = np.random.default_rng(2)
    d = rng.normal(size=12)
    c = expit(2 * d + rng.normal(size=(30, 12)))
    mean = make_pairs("paper", d, c, POINTS, CANDIDATES)
    every = make_pairs("reference", np.tile(d, (30, 1)), c, POINTS, CANDIDATES)
    for name in NAMES:
        np.testing.assert_allclose(fit(name, mean).predict(d), fit(name, every).predict(d), atol=1e-5)


@as_one(
    "source, distance, confidence, points, message",
    [
        ("reference", np.zeros((5, 12)), np.zeros((5, 12)), np.arange(30, 42), r"10 of 12 points .* \(first: id 30\)"),
        ("paper", np.zeros((5, 12)), np.zeros((5, 12)), POINTS, r"allowed for source paper: \(points,\)"),
        ("reference", np.zeros(12), np.zeros((5, 12)), POINTS, r"allowed for source reference: \(n_ref, points\)"),
        ("reference", np.zeros((5, 12)), np.full((5, 12), 1.5), POINTS, "allowed: 0 to 1"),
        ("references", np.zeros((5, 12)), np.zeros((5, 12)), POINTS, "did you mean 'reference'"),
    ],
)
def test_pairs_that_must_not_be_used_are_refused(source, distance, confidence, points, message):
    with pytest.raises(BadInput, match=message):
        make_pairs(source, distance, confidence, points, CANDIDATES)


def test_the_logistic_map_finds_the_coefficients_of_linear_logits():
    exact = fit_logistic(toy(3, noise=0.0))
    assert (exact.a, exact.b) == pytest.approx((-1.0, 3.0), abs=1e-6)
    assert exact.rmse < 1e-8 and exact.pairs == 200 and exact.name == "logistic"


def test_the_logistic_map_has_the_least_error_of_a_fine_grid():
    rng = np.random.default_rng(4)
    pairs = toy(4, count=60, noise=1.0)
    found = fit_logistic(pairs)
    assert found.rmse == pytest.approx(np.sqrt(np.mean((found.predict(pairs.distance) - pairs.confidence) ** 2)))
    for a, b in zip(rng.normal(found.a, 1.0, 4000), found.b * np.exp(rng.normal(0, 1.0, 4000)), strict=True):
        assert np.sqrt(np.mean((expit(a + b * pairs.distance) - pairs.confidence) ** 2)) >= found.rmse - 1e-12


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_unit_of_distance_does_not_matter(scale):
    pairs = toy(5, noise=0.5)
    scaled = Pairs(pairs.distance * scale, pairs.confidence, 0, "reference")
    for name in NAMES:
        expected = fit(name, pairs).predict(pairs.distance)
        np.testing.assert_allclose(fit(name, scaled).predict(scaled.distance), expected, atol=1e-7)


def test_logistic_maps_rise_even_where_confidence_falls():
    pairs = toy(6)
    falling = fit_logistic(Pairs(pairs.distance, 1 - pairs.confidence, 0, "reference"))
    assert 0 < falling.b < 1e-3
    assert falling.predict(pairs.distance) == pytest.approx(1 - pairs.confidence.mean(), abs=1e-3)
    certain = fit_logistic(Pairs(pairs.distance, np.ones(200), 0, "reference"))
    assert certain.b > 0 and certain.predict(pairs.distance) == pytest.approx(1.0, abs=1e-3)


def slow_isotonic(d, c):
    """The min-max formula: mean over the best block below and above, for distinct distances."""
    order = np.argsort(d)
    values = c[order]
    count = len(values)
    found = np.empty(count)
    for i in range(count):
        means = [[values[j : k + 1].mean() for k in range(i, count)] for j in range(i + 1)]
        found[i] = max(min(row) for row in means)
    return d[order], found


def test_the_isotonic_map_is_the_rising_function_of_least_error():
    pairs = toy(7, count=40, noise=1.5)
    d, expected = slow_isotonic(pairs.distance, pairs.confidence)
    found = fit_isotonic(pairs)
    np.testing.assert_allclose(found.predict(d), expected, atol=1e-9)
    np.testing.assert_allclose(found.predict([-np.inf, d[0] - 1, d[-1] + 1, np.inf]), expected[[0, 0, -1, -1]])
    assert found.rmse == pytest.approx(np.sqrt(np.mean((expected - pairs.confidence[np.argsort(pairs.distance)]) ** 2)))


def test_isotonic_gives_tied_distances_their_mean():
    found = fit_isotonic(Pairs(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.1, 0.3, 0.6, 0.8]), 0, "reference"))
    np.testing.assert_allclose(found.predict([0.0, 0.5, 1.0]), [0.2, 0.45, 0.7])


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_polynomials_solve_the_normal_equations_and_are_held_at_the_ends(degree):
    pairs = toy(8, count=50, noise=0.3)
    found = fit_polynomial(pairs, degree)
    powers = np.stack([pairs.distance**k for k in range(degree + 1)], axis=1)
    weights = np.linalg.solve(powers.T @ powers, powers.T @ pairs.confidence)
    np.testing.assert_allclose(found.predict(pairs.distance), np.clip(powers @ weights, 0, 1), atol=1e-9)
    low, high = pairs.distance.min(), pairs.distance.max()
    np.testing.assert_array_equal(found.predict([low - 5, high + 5, np.inf]), found.predict([low, high, high]))
    assert found.name == f"polynomial-{degree}"


def test_logistic_fits_linear_logits_best():
    pairs, null = toy(9, noise=0.1), toy(10, noise=0.1)
    errors = [fit_logistic(pairs), fit_isotonic(pairs), fit_polynomial(pairs, 3), fit_polynomial(pairs, 1)]
    held_out = [found.error(null) for found in errors]
    assert held_out == sorted(held_out) and held_out[0] < 0.2 * held_out[3]


@pytest.mark.parametrize("name", NAMES)
def test_failed_distances_stay_failed_and_confidences_stay_between_zero_and_one(name):
    found = fit(name, toy(11, noise=1.0))
    answer = found.predict([[np.nan, -np.inf, -50.0], [0.5, 50.0, np.inf]])
    assert np.isnan(answer[0, 0]) and np.isnan(answer).sum() == 1
    assert np.nanmin(answer) >= 0 and np.nanmax(answer) <= 1


@as_one(
    "name, count, message",
    [
        ("logistic", 2, "logistic needs more than 2 pairs at 2 or more distinct distances, got 2 at 2"),
        ("isotonic", 1, "isotonic needs more than 2 pairs"),
        ("polynomial", 4, "polynomial-3 needs more than 4 pairs"),
        ("logistics", 9, "did you mean 'logistic'"),
    ],
)
def test_too_few_pairs_and_unknown_maps_are_refused(name, count, message):
    with pytest.raises(BadInput, match=message):
        fit(name, toy(12, count=count))


def test_pairs_at_one_distance_and_degree_zero_are_refused():
    with pytest.raises(BadInput, match=r"got 9 at 1 \(dropped: 3\)"):
        fit_logistic(Pairs(np.ones(9), np.linspace(0, 1, 9), 3, "reference"))
    with pytest.raises(BadInput, match="degree is 0"):
        fit_polynomial(toy(13), 0)


def test_rank_p_values_of_reconstructed_losses_are_those_of_distances():
    rng = np.random.default_rng(14)
    target, reference = rng.normal(size=(8, 15)), rng.normal(size=(40, 15))
    target[0, 3], reference[5, 3] = np.nan, np.nan
    by_distance = rank_p(target, reference, True)
    logistic = fit_logistic(toy(14, slope=2.0))
    by_loss = rank_p(log_loss(logistic.predict(target)), log_loss(logistic.predict(reference)), False)
    np.testing.assert_array_equal(by_loss, by_distance)
    assert logit(logistic.predict(reference[reference == reference])).max() < 15  # nothing was clipped


def test_flat_stretches_of_a_map_can_only_raise_p():
    rng = np.random.default_rng(15)
    target, reference = rng.normal(size=(8, 15)), rng.normal(size=(40, 15))
    steps = fit_isotonic(toy(15, noise=2.0))
    by_loss = rank_p(log_loss(steps.predict(target)), log_loss(steps.predict(reference)), False)
    by_distance = rank_p(target, reference, True)
    assert (by_loss >= by_distance).all() and (by_loss > by_distance).any()
