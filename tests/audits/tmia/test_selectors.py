"""Selectors score candidates from reference models alone; rules choose by exactly one number."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from audits.errors import BadInput
from audits.seeds import torch_generator
from audits.tmia.anomalies import k_means, k_means_streamed
from audits.tmia.selectors import SELECTORS, Case, Scores, chosen
from audits.tmia.selectors.neighbours import Neighbours
from audits.tmia.selectors.reference_loss import ReferenceLoss
from tests.cases.families import as_one, thinned

CANDIDATES, REFERENCE, MODELS = 30, 120, 8
SETTINGS: dict[str, dict[str, float]] = {"neighbours": {"delta": 0.3}}


def make_case(blocks: list[int] | None = None) -> Case:
    """Two blobs of directions; candidates 0 to 2 lie elsewhere and are hard for all reference models."""
    generator, rng = torch_generator(0), np.random.default_rng(0)
    middle = torch.eye(6)[torch.randint(2, (CANDIDATES + REFERENCE,), generator=generator)]
    features = middle + 0.1 * torch.randn(CANDIDATES + REFERENCE, 6, generator=generator)
    features[:3] = torch.eye(6)[2:5]
    loss = rng.exponential(0.3, (MODELS, CANDIDATES))
    loss[:, :3] += 2.0
    uniqueness = rng.exponential(0.3, CANDIDATES)
    uniqueness[:3] += 3.0
    return Case(
        candidates=CANDIDATES,
        classes=2,
        train_size=40,
        seed=1,
        features=features if blocks is None else list(features.split(blocks, dim=1)),
        loss=loss,
        reference_loss=rng.exponential(0.3, (MODELS, REFERENCE)),
        reference_outside=rng.random((MODELS, REFERENCE)) < 0.7,
        uniqueness=uniqueness,
        reference_uniqueness=rng.exponential(0.3, REFERENCE),
    )


@as_one("name", [name for name in SELECTORS if name != "none"])
def test_every_selector_finds_the_points_that_stand_apart(name: str) -> None:
    scores = SELECTORS[name](**SETTINGS.get(name, {})).select(make_case())
    assert np.flatnonzero(chosen(scores, size=3)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["kmeans", "neighbours"])
def test_features_in_blocks_choose_the_same(name: str) -> None:
    whole, streamed = (
        SELECTORS[name](**SETTINGS.get(name, {})).select(make_case(blocks)) for blocks in (None, [1, 3, 2])
    )
    assert np.flatnonzero(chosen(whole, size=3)).tolist() == np.flatnonzero(chosen(streamed, size=3)).tolist()


def test_the_k_means_score_is_the_distance_to_the_own_centre() -> None:
    case = make_case()
    scores = SELECTORS["kmeans"]().select(case)
    slow = k_means(case.features, 2, seed=1).distance
    np.testing.assert_array_equal(scores.candidates, slow[:CANDIDATES])
    np.testing.assert_array_equal(scores.reference, slow[CANDIDATES:])
    three = SELECTORS["kmeans"](n_clusters=3).select(make_case([6])).candidates
    np.testing.assert_array_equal(three, k_means_streamed([case.features], 3, seed=1).distance[:CANDIDATES])


def test_reference_loss_is_the_mean_over_models_that_never_saw_the_point() -> None:
    case = make_case()
    case.reference_outside[:, 5] = False  # all of them trained on it
    scores = ReferenceLoss().select(case)
    slow = [np.mean([case.loss[model, point] for model in range(MODELS)]) for point in range(CANDIDATES)]
    np.testing.assert_allclose(scores.candidates, slow)
    slow = [
        np.mean([case.reference_loss[model, point] for model in range(MODELS) if case.reference_outside[model, point]])
        for point in range(REFERENCE)
        if point != 5
    ]
    np.testing.assert_allclose(scores.reference, slow)
    assert ReferenceLoss().select(dataclasses.replace(case, reference_outside=None)).reference is None


@pytest.mark.parametrize(
    ("blocks", "chunk", "delta"),
    thinned(
        (
            (blocks, chunk, delta)
            for blocks in (None, [1, 3, 2])
            for chunk in (7, 1024)
            for delta in (0.005, 0.02, 0.3, 0.98)
        ),
        [(None, 7, 0.02), (None, 1024, 0.98), ([1, 3, 2], 7, 0.3), ([1, 3, 2], 1024, 0.005)],
    ),
)
def test_neighbours_are_counted_as_in_the_slow_loop(delta: float, chunk: int, blocks: list[int] | None) -> None:
    features = make_case().features.double()
    features[4] = 0.0
    expected = []
    for x in features[:CANDIDATES]:
        near = 0
        for other in features[CANDIDATES:]:
            lengths = float(x.norm() * other.norm())
            cosine = float(x @ other) / lengths if lengths else 0.0
            near += 1 - cosine < delta
        expected.append(near * 40 / REFERENCE)
    shown = features.float() if blocks is None else list(features.float().split(blocks, dim=1))
    scores = Neighbours(delta, chunk).select(dataclasses.replace(make_case(), features=shown))
    np.testing.assert_allclose(-scores.candidates, expected, rtol=1e-12)
    assert len(set(expected)) > 1
    np.testing.assert_array_equal(chosen(scores, alpha=-0.1), np.array(expected) < 0.1)


def test_none_chooses_everyone_by_every_rule() -> None:
    scores = SELECTORS["none"]().select(make_case())
    for rule in ({"alpha": 5.0}, {"size": 2}, {"quantile": 0.99}):
        assert chosen(scores, **rule).all()


def test_rules_choose_above_a_threshold_or_the_largest() -> None:
    scores = Scores(np.array([0.2, 0.9, 0.5, 0.9, 0.1]), np.linspace(0, 1, 101))
    assert chosen(scores, alpha=0.5).tolist() == [False, True, False, True, False]
    assert chosen(scores, quantile=0.15).tolist() == [True, True, True, True, False]
    assert chosen(scores, size=1).tolist() == [False, True, False, False, False]
    assert chosen(scores, size=3).tolist() == [False, True, True, True, False]
    assert not chosen(scores, size=0).any()


@as_one(
    "call, says",
    [
        (lambda: chosen(Scores(np.zeros(3))), "exactly one"),
        (lambda: chosen(Scores(np.zeros(3)), alpha=0.1, size=2), "exactly one"),
        (lambda: chosen(Scores(np.zeros(3)), size=4), "size is 4"),
        (lambda: chosen(Scores(np.zeros(3)), quantile=0.9), "no scores of reference samples"),
        (lambda: SELECTORS["kmean"], "did you mean 'kmeans'"),
        (lambda: SELECTORS["kmeans"]().select(dataclasses.replace(make_case(), features=None)), "features"),
        (lambda: ReferenceLoss().select(dataclasses.replace(make_case(), loss=None)), "reference_loss reads"),
        (lambda: dataclasses.replace(make_case(), candidates=29), "give .reference models, 29 candidates"),
        (lambda: dataclasses.replace(make_case(), reference_outside=np.ones((2, 2), bool)), "give equal ones"),
        (lambda: Neighbours(delta=0.0), "delta is 0"),
        (lambda: Neighbours(chunk=0), "chunk is 0"),
        (lambda: Neighbours().select(dataclasses.replace(make_case(), candidates=150, loss=None)), "candidates only"),
    ],
)
def test_what_cannot_work_is_refused(call, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput, match=says):
        call()
