"""k-means against a slow float64 loop, against scikit-learn, and streamed against whole."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from audits.errors import BadInput
from audits.seeds import derive_seed, torch_generator
from audits.tmia.anomalies import k_means, k_means_streamed, plus_plus
from audits.tmia.features import gaussian_map
from audits.tmia.points import Streamed, Whole, compared, own_squared
from audits.tmia.selectors.base import quantile_of
from tests.cases.families import as_one, thinned

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


@as_one("seed", range(6))
@as_one("max_iter", [1, 3, 50])
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


@as_one("seed", range(4))
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


@pytest.mark.parametrize("seed", thinned(range(5), (0,)))
def test_inertia_is_as_good_as_that_of_scikit_learn(seed: int) -> None:
    from sklearn.cluster import KMeans

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
    x = blobs(40, 5, 2, spread=2.0)
    whole = k_means(x, 5, seed=3, chunk=1024)
    for chunk in (7, 64):
        part = k_means(x, 5, seed=3, chunk=chunk)
        np.testing.assert_array_equal(part.assignment, whole.assignment)
        np.testing.assert_allclose(part.distance, whole.distance, rtol=1e-5)


@pytest.mark.gpu
def test_an_accelerator_gives_the_clusters_of_the_cpu_and_the_same_twice() -> None:
    x = blobs(5000, 8, 2, spread=1.0)
    here, there, again = k_means(x, 8, seed=3), k_means(x.cuda(), 8, seed=3), k_means(x.cuda(), 8, seed=3)
    np.testing.assert_array_equal(there.distance, again.distance)
    np.testing.assert_allclose(there.distance, here.distance, rtol=1e-4, atol=1e-5)
    streamed = (k_means_streamed(list(each.split([2, 4], dim=1)), 8, seed=3, columns=5) for each in (x, x.cuda()))
    assert next(streamed).inertia == pytest.approx(next(streamed).inertia, rel=1e-5)


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


def test_blocks_that_can_be_held_are_clustered_as_the_whole() -> None:
    x = blobs(300, 6, 5, spread=3.0)
    whole, found = k_means(x, 6, seed=2), k_means_streamed(list(x.split([2, 1, 3], dim=1)), 6, seed=2, columns=6)
    np.testing.assert_array_equal(found.distance, whole.distance)


def test_a_sketch_keeps_squared_distances_with_the_error_that_is_told() -> None:
    x = blobs(40, 40, 3, width=90, spread=2.0)
    exact = torch.pdist(x).square()
    ratios = []
    for seed in range(40):
        sketch, width = Streamed(x.split([30, 10, 50], dim=1), 40, chunk=7).sketch(32, seed)
        assert sketch.shape == (40, 32) and width == 90
        ratios.append(torch.pdist(sketch).square() / exact)
    ratio = torch.stack(ratios)  # 40 maps, 780 pairs of points
    assert float(ratio.mean()) == pytest.approx(1, abs=0.02)
    assert float(ratio.std(0).mean()) == pytest.approx(np.sqrt(2 / 32), rel=0.06)


def test_a_sketch_is_the_sum_of_one_map_of_each_block() -> None:
    x = blobs(20, 3, 1, width=50)
    blocks = list(x.split([12, 3, 20, 15], dim=1))  # two are held before the third is too much
    sketch, _ = Streamed(blocks, 20, chunk=6).sketch(16, 9)
    ways = [gaussian_map(block.shape[1], 16, derive_seed(9, "k-means sketch", b + 1)) for b, block in enumerate(blocks)]
    slow = sum(block.double() @ way.double() for block, way in zip(blocks, ways, strict=True))
    assert torch.allclose(sketch.double(), slow, atol=1e-4)
    assert not torch.allclose(sketch, Streamed(blocks, 20, chunk=6).sketch(16, 8)[0], atol=1.0)


@pytest.mark.parametrize("spread", thinned((1.0, 4.0, 8.0), (4.0,)))
def test_clusters_found_in_a_sketch_are_as_good_and_their_distances_exact(spread: float) -> None:
    x = blobs(900, 6, 5, width=120, spread=spread)
    blocks = list(x.split(40, dim=1))
    found, whole = k_means_streamed(blocks, 6, seed=0, sample=300, columns=64), k_means(x, 6, seed=0)
    assert found.inertia <= 1.005 * whole.inertia
    assert np.median(np.abs(found.distance / whole.distance - 1)) < 0.005
    far, chosen = (one.distance > quantile_of(one.distance, 0.95) for one in (found, whole))
    assert (far & chosen).sum() >= 0.9 * chosen.sum()
    centres = found.centres.double().numpy()
    slow = np.sqrt(((x.double().numpy()[:, None] - centres[None]) ** 2).sum(-1))
    np.testing.assert_array_equal(found.assignment, slow.argmin(1))
    np.testing.assert_allclose(found.distance, slow.min(1), rtol=1e-6)
    again = k_means_streamed(blocks, 6, seed=0, sample=300, columns=64)
    np.testing.assert_array_equal(found.distance, again.distance)


def test_the_step_on_the_features_themselves_mends_a_rough_sketch() -> None:
    x = blobs(900, 6, 5, width=120, spread=3.0)
    whole = k_means(x, 6, seed=0)
    found = k_means_streamed(list(x.split(40, dim=1)), 6, seed=0, columns=2)  # two columns tell the blobs badly apart
    sketch, _ = Streamed(x.split(40, dim=1), 900, 1024).sketch(2, 0)
    rough = torch.from_numpy(k_means(sketch, 6, seed=0).assignment)
    means = torch.stack([x[rough == cluster].mean(0) for cluster in range(6)])
    left = float(own_squared(x, rough, means, 1024).sum())
    assert whole.inertia < found.inertia < left


def test_blocks_are_read_three_times_however_many_iterations() -> None:
    class Counting:
        read = 0

        def __iter__(self):  # type: ignore[no-untyped-def]
            self.read += 1
            return iter(blobs(200, 4, 6, spread=2.0).split([2, 4], dim=1))

    blocks = Counting()
    found = k_means_streamed(blocks, 4, seed=0, sample=150, columns=5)
    assert found.iterations > 2 and blocks.read == 1 + 3  # its first block; the sketch, the step, distances
    blocks.read = 0
    found = k_means_streamed(blocks, 4, seed=0, start=blobs(200, 4, 6, spread=2.0)[:4])
    assert blocks.read == 1 + 2 + found.iterations  # its first block, assignment, distances


# ------------------------------------------------------------------------------------------- thresholds, refusals


def test_the_threshold_is_the_quantile_of_reference_samples() -> None:
    reference = np.random.default_rng(0).random(1000)
    alpha = quantile_of(reference, 0.99)
    assert int((reference > alpha).sum()) == 10
    assert alpha == pytest.approx(np.sort(reference)[989], abs=2e-3)


@as_one(
    "call, says",
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
        (lambda x: k_means_streamed([x, x[:9]], 2, seed=0), "a block has 9 points, the first 10"),
        (lambda x: k_means_streamed([x, x], 2, seed=0, columns=0), "columns is 0"),
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
