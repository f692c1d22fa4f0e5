"""Uniqueness of points beside those that a model trained on: the formula, and the selector that reads it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from audits.errors import BadInput
from audits.tmia.selectors import SELECTORS, Case
from audits.uniqueness.newcomers import newcomers_uniqueness
from audits.uniqueness.uniqueness import uniqueness_from_gram
from tests.cases.families import as_one


def gradients(points: int, parameters: int, seed: int) -> torch.Tensor:
    return torch.randn(points, parameters, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@as_one("relative", [True, False])
@as_one("known, new, parameters", [(8, 5, 30), (30, 4, 7), (1, 1, 3), (12, 12, 12)])
def test_newcomers_are_measured_against_the_known_points_alone(
    known: int, new: int, parameters: int, relative: bool
) -> None:
    G = gradients(known + new, parameters, seed=known)
    G[-1] *= 1e-3
    S = G[:known].T @ G[:known]
    penalty = 0.01 * (float(S.diagonal().sum()) / known if relative else 1.0)
    inverse = torch.linalg.inv(S + penalty * torch.eye(parameters, dtype=torch.float64))
    expected = torch.stack([g @ inverse @ g for g in G[known:]]).numpy()
    found = newcomers_uniqueness(G @ G.T, known, ridge=0.01, relative=relative)
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)


def test_the_only_newcomer_has_the_uniqueness_of_a_training_point() -> None:
    G = gradients(9, 20, seed=1)
    K = G @ G.T
    assert newcomers_uniqueness(K, 8, 0.1, relative=False)[0] == pytest.approx(
        uniqueness_from_gram(K, ridge=0.1, relative=False)[8], rel=1e-9
    )


def test_points_that_cannot_be_measured_are_refused() -> None:
    K = gradients(4, 6, seed=2) @ gradients(4, 6, seed=2).T
    for known in (0, 4):
        with pytest.raises(BadInput, match="allowed: 1 to 3"):
            newcomers_uniqueness(K, known)
    for ridge in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(BadInput, match="allowed: a number above 0"):
            newcomers_uniqueness(K, 2, ridge=ridge)
    with pytest.raises(BadInput, match="it has a negative eigenvalue"):
        newcomers_uniqueness(1.9 * torch.eye(4, dtype=K.dtype) - 0.9, 3, ridge=1e-3)
    K[:2] = K[:, :2] = 0
    with pytest.raises(BadInput, match="all zero"):
        newcomers_uniqueness(K, 2)


@pytest.mark.parametrize("relative", [True, False])
def test_a_ridge_that_rounding_hides_is_refused_and_the_one_that_is_offered_is_exact(relative: bool) -> None:
    G = gradients(6, 3, seed=4)
    K, S = G @ G.T, G[:5].T @ G[:5]
    for ridge in (1e-13, 1e-15, 1e-20, 1e-320):
        with pytest.raises(BadInput, match="is hidden by rounding of K") as caught:
            newcomers_uniqueness(K, 5, ridge=ridge, relative=relative)
        assert "\n" not in str(caught.value)
        offered = float(str(caught.value).split("give ")[1].split(" or more")[0])
        penalty = offered * (float(S.diagonal().sum()) / 5 if relative else 1.0)
        expected = float(G[5] @ torch.linalg.solve(S + penalty * torch.eye(3, dtype=S.dtype), G[5]))
        assert newcomers_uniqueness(K, 5, offered, relative)[0] == pytest.approx(expected, rel=1e-4)


def test_values_beyond_the_range_of_float64_are_refused() -> None:
    K = torch.diag(torch.tensor([0.0, 0.0, 1e10], dtype=torch.float64))
    with pytest.raises(BadInput, match="beyond the range of float64"):
        newcomers_uniqueness(K, 2, ridge=1e-300, relative=False)


def test_the_selector_reads_uniqueness_or_says_that_it_is_missing() -> None:
    selector = SELECTORS["gnq"]()
    case = Case(3, 2, 10, 0, uniqueness=np.array([0.1, 2.0, 0.3]), reference_uniqueness=np.array([0.2, 0.4]))
    scores = selector.select(case)
    assert scores.candidates.argmax() == 1
    assert scores.reference is not None and len(scores.reference) == 2
    with pytest.raises(BadInput, match="none is given"):
        selector.select(Case(3, 2, 10, 0))
