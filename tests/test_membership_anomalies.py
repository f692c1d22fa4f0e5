"""k-means against a slow float64 loop, against scikit-learn, and streamed against whole."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from audits.errors import BadInput
from audits.membership.anomalies import k_means, k_means_streamed, plus_plus, quantile_of
from audits.membership.points import Whole, compared, own_squared
from audits.seeds import torch_generator

SPLITS = ([6], [1, 5], [2, 2, 2], [1] * 6)


def blobs(count: int, clusters: int, seed: int, width: int = 6, spread: float = 1.0, off: float = 0.0) -> torch.Tensor:
    generator = torch_generator(seed)
    centres = 4 * torch.randn(clusters, width, generator=generator)
    own = torch.randint(clusters, (count,), generator=generator)
    return centres[own] + spread * torch.randn(count, width, generator=generator) + off


def slow_lloyd(x: np.ndarray, start: np.ndarray, max_iter: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return assignment, centres, distances and iterations, one point at a time in float64."""
    x, centres = x.astype(np.float64), start.astype(np.float64).copy()

    def squared(point: np.ndarray) -> list[float]:
        return [float(((point - centre) ** 2).sum()) for centre in centres]

    assignment = [int(np.argmin(squared(point))) for point in x]
    for iteration in range(1, max_iter + 1):  # noqa: B007  # it is returned
        distance = [squared(x[i])[assignment[i]] for i in range(len(x))]
        for cluster in range(len(centres)):
            if cluster in assignment:
                continue
            others = [i for i in range(len(x)) if assignment.count(assignment[i]) > 1 and distance[i] > 0]
            if others:
                farthest = max(others, key=lambda i: distance[i])
                assignment[farthest], distance[farthest] = cluster, 0.0
        for cluster in range(len(centres)):
            rows = [x[i] for i in range(len(x)) if assignment[i] == cluster]
            if rows:
                centres[cluster] = sum(rows) / len(rows)
        before, assignment = assignment, [int(np.argmin(squared(point))) for point in x]
        if before == assignment:
            break
    final = [np.sqrt(squared(x[i])[assignment[i]]) for i in range(len(x))]
    return np.array(assignment), centres, np.array(final), iteration


# ------------------------------------------------------------------------------------------- against the slow form


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("max_iter", [1, 3, 50])
def test_from_one_start_it_is_the_slow_loop(seed: int, max_iter: int) -> None:
    x = blobs(60, 4, seed, spread=2.0)
    start = x[torch.randperm(60, generator=torch_generator(seed))[:5]]
    assignment, centres, distance, iterations = slow_lloyd(x.numpy(), start.numpy(), max_iter)
    found = k_means(x, 5, seed=0, max_iter=max_iter, chunk=17, start=start)
    np.testing.assert_array_equal(found.assignment, assignment)
    np.testing.assert_allclose(found.centres.numpy(), centres, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found.distance, distance, rtol=1e-5, atol=1e-5)
    assert found.inertia == pytest.approx(float((distance**2).sum()), rel=1e-5)
    assert found.iterations == iterations


@pytest.mark.parametrize("seed", range(4))
def test_empty_clusters_take_the_farthest_points_as_in_the_slow_loop(seed: int) -> None:
    x = blobs(40, 3, seed)
    start = torch.cat([x[:2], torch.full((3, 6), 500.0)])  # three centres that nobody is near
    assignment, centres, distance, iterations = slow_lloyd(x.numpy(), start.numpy(), 50)
    found = k_means(x, 5, seed=0, max_iter=50, start=start)
    assert len(set(assignment.tolist())) == 5
    np.testing.assert_array_equal(found.assignment, assignment)
    np.testing.assert_allclose(found.centres.numpy(), centres, rtol=0, atol=1e-5)
    np.testing.assert_allclose(found.distance, distance, rtol=1e-5, atol=1e-5)
    assert found.iterations == iterations


def test_a_cluster_is_not_robbed_of_its_only_point() -> None:
    x = torch.tensor([[0.0], [1.0], [100.0]])
    start = torch.tensor([[0.0], [60.0], [1e4]])  # 100 is alone with 60 and farthest of all; 1e4 has nobody
    found = k_means(x, 3, seed=0, start=start)
    assert sorted(found.assignment.tolist()) == [0, 1, 2] and found.inertia == 0


def test_features_far_from_zero_keep_their_digits() -> None:
    x = blobs(80, 4, 1, spread=1.5, off=3000.0)
    start = x[:4]
    assignment, _, distance, _ = slow_lloyd(x.numpy(), start.numpy(), 50)
    found = k_means(x, 4, seed=0, max_iter=50, start=start)
    np.testing.assert_array_equal(found.assignment, assignment)
    np.testing.assert_allclose(found.distance, distance, rtol=1e-3)


def test_compared_differs_from_squared_distances_by_a_number_of_the_row() -> None:
    x, centres = blobs(9, 2, 0).double(), blobs(4, 2, 1).double()
    slow = ((x[:, None] - centres[None]) ** 2).sum(-1)
    rest = slow - compared(x, centres)
    assert torch.allclose(rest, rest[:, :1].expand_as(rest), atol=1e-9)
    assert torch.allclose(Whole(x, 2).apart(centres), slow, atol=1e-9)
    assert torch.allclose(own_squared(x, torch.arange(9) % 4, centres, 4), slow[torch.arange(9), torch.arange(9) % 4])


def test_rounding_gives_no_negative_squared_distance() -> None:
    x = blobs(60, 4, 0)
    assert float(Whole(x, 7).apart(x).min()) >= 0


# ------------------------------------------------------------------------------------------- starts and restarts


@pytest.mark.parametrize("seed", range(5))
def test_inertia_is_as_good_as_that_of_scikit_learn(seed: int) -> None:
    x = blobs(600, 12, seed, spread=1.5)
    theirs = KMeans(12, n_init=10, random_state=seed).fit(x.numpy()).inertia_
    assert k_means(x, 12, seed=seed).inertia <= 1.02 * theirs


def test_plus_plus_finds_every_one_of_separate_blobs() -> None:
    x = torch.cat([100.0 * blob + torch.randn(20, 1, generator=torch_generator(blob)) for blob in range(8)])
    for seed in range(20):
        start = plus_plus(Whole(x, 64), 8, torch_generator(seed))
        assert sorted((start[:, 0] / 100).round().int().tolist()) == list(range(8))


def test_equal_seeds_give_equal_clusters_and_the_global_generator_plays_no_part() -> None:
    x = blobs(300, 6, 0, spread=3.0)
    torch.manual_seed(1)
    first = k_means(x, 6, seed=5, restarts=1)
    torch.manual_seed(2)
    second = k_means(x, 6, seed=5, restarts=1)
    np.testing.assert_array_equal(first.distance, second.distance)
    assert torch.equal(first.centres, second.centres)
    assert not np.array_equal(first.distance, k_means(x, 6, seed=6, restarts=1).distance)


def test_more_restarts_and_more_iterations_never_have_more_inertia() -> None:
    x = blobs(200, 9, 3, spread=3.0)
    by_restarts = [k_means(x, 9, seed=1, restarts=count).inertia for count in (1, 2, 5)]
    by_iterations = [k_means(x, 9, seed=1, start=x[:9], max_iter=count).inertia for count in (1, 2, 4, 8)]
    for found in (by_restarts, by_iterations):
        assert all(later <= earlier * (1 + 1e-6) for earlier, later in itertools.pairwise(found))
        assert found[-1] < found[0]


def test_fewer_different_points_than_clusters_end_at_distance_zero() -> None:
    x = torch.tensor([[0.0, 1.0], [2.0, 3.0]]).repeat(10, 1)
    found = k_means(x, 4, seed=0)
    assert found.inertia == pytest.approx(0, abs=1e-9) and len(set(found.assignment.tolist())) == 2
    assert found.iterations == 1


def test_chunks_change_rounding_only() -> None:
    x = blobs(150, 5, 2, spread=2.0)
    whole = k_means(x, 5, seed=3, chunk=1024)
    for chunk in (1, 7, 64):
        part = k_means(x, 5, seed=3, chunk=chunk)
        np.testing.assert_array_equal(part.assignment, whole.assignment)
        np.testing.assert_allclose(part.distance, whole.distance, rtol=1e-5)


@pytest.mark.gpu
def test_an_accelerator_gives_the_clusters_of_the_cpu_and_the_same_twice() -> None:
    x = blobs(5000, 8, 2, spread=1.0)
    here, there, again = k_means(x, 8, seed=3), k_means(x.cuda(), 8, seed=3), k_means(x.cuda(), 8, seed=3)
    np.testing.assert_array_equal(there.distance, again.distance)
    np.testing.assert_allclose(there.distance, here.distance, rtol=1e-4, atol=1e-5)
    streamed = k_means_streamed(list(x.cuda().split([2, 4], dim=1)), 8, seed=3)
    assert streamed.inertia == pytest.approx(here.inertia, rel=1e-3)


# ------------------------------------------------------------------------------------------- streamed


@pytest.mark.parametrize("widths", SPLITS)
def test_blocks_give_what_the_whole_gives_from_one_start(widths: list[int]) -> None:
    x = blobs(120, 4, 4, spread=2.0)
    start = torch.cat([x[:4], torch.full((1, 6), 300.0)])
    whole = k_means(x, 5, seed=0, start=start)
    found = k_means_streamed(list(x.split(widths, dim=1)), 5, seed=0, start=start, chunk=50)
    np.testing.assert_array_equal(found.assignment, whole.assignment)
    np.testing.assert_allclose(found.distance, whole.distance, rtol=1e-5)
    assert torch.allclose(found.centres, whole.centres, atol=1e-5) and found.iterations == whole.iterations


def test_streamed_clusters_start_from_a_sample_and_are_as_good() -> None:
    x = blobs(900, 6, 5, spread=1.0)
    found = k_means_streamed(list(x.split([3, 3], dim=1)), 6, seed=0, sample=100)
    assert found.inertia <= 1.02 * k_means(x, 6, seed=0).inertia
    again = k_means_streamed(list(x.split([3, 3], dim=1)), 6, seed=0, sample=100)
    np.testing.assert_array_equal(found.distance, again.distance)


def test_blocks_are_read_as_often_as_promised() -> None:
    class Counting:
        read = 0

        def __iter__(self):  # type: ignore[no-untyped-def]
            self.read += 1
            return iter(blobs(200, 4, 6, spread=2.0).split([2, 4], dim=1))

    blocks = Counting()
    found = k_means_streamed(blocks, 4, seed=0, sample=150)
    assert blocks.read == 4 + found.iterations  # its first block, the sample, assignment, distances


# ------------------------------------------------------------------------------------------- thresholds, refusals


def test_the_threshold_is_the_quantile_of_contrast_samples() -> None:
    contrast = np.random.default_rng(0).random(1000)
    alpha = quantile_of(contrast, 0.99)
    assert int((contrast > alpha).sum()) == 10
    assert alpha == pytest.approx(np.sort(contrast)[989], abs=2e-3)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda x: k_means(x, 11, seed=0), "n_clusters is 11, but 10 points"),
        (lambda x: k_means(x, 0, seed=0), "n_clusters is 0"),
        (lambda x: k_means(x, 2, seed=0, restarts=0), "restarts is 0"),
        (lambda x: k_means(x, 2, seed=0, max_iter=0), "max_iter is 0"),
        (lambda x: k_means_streamed([x], 5, seed=0, sample=4), "but 4 points"),
        (lambda x: k_means(x, 3, seed=0, start=x[:2]), r"start has shape \(2, 6\)"),
        (lambda x: k_means(x, 2, seed=0, start=x[:2, :3]), "start has shape"),
        (
            lambda x: k_means_streamed([x, x], 2, seed=0, start=x[:2]),
            "6 columns, but there are 10 points and 0 columns",
        ),
        (lambda x: k_means_streamed([x], 3, seed=0, start=x[:2]), "start has 2 centres"),
        (lambda x: k_means_streamed([x, x], 2, seed=0, start=x.repeat(1, 3)[:2]), "18 columns"),
        (lambda x: k_means_streamed([x, x[:9]], 2, seed=0, start=x.repeat(1, 2)[:2]), "9 points"),
        (lambda x: quantile_of([], 0.9), "none"),
        (lambda x: quantile_of([1.0], 1.5), "1.5"),
    ],
)
def test_what_cannot_work_is_refused(call, says: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(BadInput, match=says):
        call(blobs(10, 2, 0))


def test_a_generator_of_blocks_is_refused() -> None:
    with pytest.raises(TypeError, match="more than once"):
        k_means_streamed((block for block in [blobs(10, 2, 0)]), 2, seed=0)


def test_features_that_are_not_numbers_are_named() -> None:
    x = blobs(10, 2, 0)
    x[3, 2] = float("nan")
    with pytest.raises(FloatingPointError, match="NaN"):
        k_means(x, 2, seed=0, start=x[:2])
