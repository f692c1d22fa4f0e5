"""Moderated variances: the prior is found again, and variances lie between a point's own and the common one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import polygamma

from audits.signals.likelihood_ratio import SMALLEST_VARIANCE, moments
from audits.signals.moderated import fitted_prior, inverse_trigamma, moderated_moments


def drawn(points: int, models: int, prior: float, shared: float, seed: int = 0) -> np.ndarray:
    """Return values (models, points) whose variances are drawn from a scaled inverse chi-square."""
    random = np.random.default_rng(seed)
    variance = prior * shared / random.chisquare(prior, points)
    return random.normal(size=points) + np.sqrt(variance) * random.normal(size=(models, points))


def test_inverse_trigamma_undoes_trigamma() -> None:
    for value in (1e-4, 0.1, 1.0, 30.0, 1e5):
        assert inverse_trigamma(float(polygamma(1, value))) == pytest.approx(value, rel=1e-8)


def test_the_prior_that_variances_were_drawn_from_is_found_again() -> None:
    values = drawn(20000, 6, 4.0, 2.0)
    prior, shared = fitted_prior(values.var(0, ddof=1), np.full(20000, 5.0))
    assert prior == pytest.approx(4.0, rel=0.1)
    assert shared == pytest.approx(2.0, rel=0.05)


def test_moderated_variances_are_nearer_to_the_truth_than_pooled_ones_and_single_ones() -> None:
    random, models = np.random.default_rng(1), 8
    truth = 8.0 / random.chisquare(4.0, 5000)
    values = random.normal(size=5000) + np.sqrt(truth) * random.normal(size=(models, 5000))
    side = np.ones(values.shape, bool)
    found = {pooled: moments(values, side, pooled=pooled)[1] for pooled in (True, False)}
    found["moderated"] = moderated_moments(values, side)[1]
    error = {name: float(np.abs(np.log(variance / truth)).mean()) for name, variance in found.items()}
    assert error["moderated"] < 0.95 * min(error[True], error[False]), error


def test_equal_variances_are_pooled_and_few_models_fall_back() -> None:
    values = np.random.default_rng(2).normal(size=(40, 3000))
    variance = moderated_moments(values, np.ones(values.shape, bool))[1]
    assert variance.std() < 0.02 and variance.mean() == pytest.approx(1.0, rel=0.05)
    side = np.ones(values.shape, bool)
    side[1:, 0] = side[:, 1] = False  # one model, and none
    mean, variance = moderated_moments(values, side)
    assert mean[0] == values[0, 0] and mean[1] == pytest.approx(values[side].mean())
    assert np.isfinite(variance).all() and variance[0] == variance[1]


def test_models_that_all_say_the_same_have_the_smallest_variance() -> None:
    mean, variance = moderated_moments(np.zeros((4, 5)), np.ones((4, 5), bool))
    assert (mean == 0).all() and (variance == SMALLEST_VARIANCE).all()
