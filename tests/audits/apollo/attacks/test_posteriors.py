"""LiRA, U-LiRA, RULI and RMIA against slow forms (SciPy, loops) of what their papers define."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import gaussian_kde, norm

from audits.apollo.attacks import ATTACKS, Finding
from audits.apollo.attacks.ruli import log_density
from audits.apollo.evidence import Evidence, Posteriors
from audits.apollo.evidence.logits import Logits
from audits.apollo.evidence.population import Population
from audits.signals.likelihood_ratio import SMALLEST_VARIANCE, log_likelihood_ratio, moments
from audits.signals.rmia import dominance
from tests.audits.apollo.attacks.posteriors import TOLERANCE, K, seen_by
from tests.cases.families import thinned
from tests.cases.synthetic_evidence import make_evidence

Judge = Callable[[float, int, list[int]], float]


def logit(log_probabilities: np.ndarray, label: int) -> float:
    """Return log p/(1 − p) of the class ``label``, summed up class by class."""
    p = np.exp(log_probabilities.astype(float))
    return float(np.log(p[label]) - np.log(sum(p[j] for j in range(len(p)) if j != label)))


def check(finding: Finding, target: np.ndarray, null: np.ndarray, outside: np.ndarray, judge: Judge) -> None:
    """Compare a finding with ``judge(value, point, models that may judge)`` of ``target`` (K,) and ``null`` (m, K).

    The target is judged in the place of each model that never saw the point, by all models but that one.
    """
    everyone = list(range(len(null)))

    def but(i: int) -> list[int]:
        return [j for j in everyone if j != i]

    wanted = [np.mean([judge(target[k], k, but(i)) for i in everyone if outside[i, k]]) for k in range(len(target))]
    np.testing.assert_allclose(finding.score, wanted, rtol=0, atol=TOLERANCE)
    wanted = [judge(null[i, k], k, but(i)) for i in everyone for k in range(len(target)) if outside[i, k]]
    np.testing.assert_allclose(finding.null, wanted, rtol=0, atol=TOLERANCE)


def logits_of(seen: Posteriors) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the log-odds of original shadows, unlearned shadows and target."""
    original, shadow = (
        np.array([[logit(row[k], seen.labels[k]) for k in range(K)] for row in rows])
        for rows in (seen.original, seen.shadow)
    )
    return original, shadow, np.array([logit(seen.target[k], seen.labels[k]) for k in range(K)])


def pooled_sigma(values: np.ndarray, side: np.ndarray, models: list[int]) -> float:
    """Return the standard deviation around the points' means, with as many degrees of freedom as there are."""
    deviations, points = [], 0
    for k in range(values.shape[1]):
        own = [values[i, k] for i in models if side[i, k]]
        deviations += [value - np.mean(own) for value in own]
        points += bool(own)
    return float(np.sqrt(np.square(deviations).sum() / (len(deviations) - points)))


def ratio(values: tuple[np.ndarray, np.ndarray], sides: tuple[np.ndarray, np.ndarray], *, pooled: bool) -> Judge:
    """Return the log-density difference of two normal distributions by ``scipy.stats.norm``."""

    def judge(value: float, k: int, models: list[int]) -> float:
        density = []
        for rows, side in zip(values, sides, strict=True):
            mean, sigma = norm.fit([rows[i, k] for i in models if side[i, k]])
            density.append(norm.logpdf(value, mean, pooled_sigma(rows, side, models) if pooled else sigma))
        return float(density[0] - density[1])

    return judge


# ------------------------------------------------------------------------------------------------ LiRA and U-LiRA


@pytest.mark.parametrize(
    ("name", "pooled", "kept"),
    thinned(
        ((*rule, kept) for rule in (("u_lira", True), ("u_lira_per_point", False)) for kept in (False, True)),
        [("u_lira", True, True), ("u_lira_per_point", False, False)],
    ),
)
def test_u_lira_is_the_ratio_of_normal_densities_over_unlearned_shadows(name: str, pooled: bool, kept: bool) -> None:
    evidence = make_evidence(0, K, models=8, kept=kept, kinds=ATTACKS[name].reads)[0]
    seen = evidence.posterior()
    _, shadow, target = logits_of(seen)
    judge = ratio((shadow, shadow), (seen.inside, seen.outside), pooled=pooled)
    check(ATTACKS[name]().judge(evidence), target, shadow, seen.outside, judge)


def test_lira_is_the_ratio_over_original_shadows_and_judges_unlearned_ones() -> None:
    evidence = seen_by("lira")
    seen = evidence.posterior()
    original, shadow, target = logits_of(seen)
    judge = ratio((original, original), (seen.inside, seen.outside), pooled=True)
    check(ATTACKS["lira"]().judge(evidence), target, shadow, seen.outside, judge)


def test_lira_is_u_lira_where_nothing_was_unlearned() -> None:
    seen = seen_by("lira").posterior()
    identity = Evidence({"posteriors": dataclasses.replace(seen, original=seen.shadow)})
    one, two = (ATTACKS[name]().judge(identity) for name in ("lira", "u_lira"))
    np.testing.assert_array_equal(one.score, two.score)
    np.testing.assert_array_equal(one.null, two.null)


def test_lira_offline_is_the_one_sided_test_against_original_shadows_outside() -> None:
    evidence = seen_by("lira_offline", 1)
    seen = evidence.posterior()
    original, shadow, target = logits_of(seen)

    def judge(value: float, k: int, models: list[int]) -> float:
        mean = np.mean([original[i, k] for i in models if seen.outside[i, k]])
        return float(-norm.logsf(value, mean, pooled_sigma(original, seen.outside, models)))

    finding = ATTACKS["lira_offline"]().judge(evidence)
    check(finding, target, shadow, seen.outside, judge)
    paper = [norm.cdf(target[k], *norm.fit(original[seen.outside[:, k], k])) for k in range(K)]
    assert np.corrcoef(finding.score, paper)[0, 1] > 0.8


def test_lira_offline_reads_no_shadow_inside() -> None:
    evidence, other = seen_by("lira_offline", 2), seen_by("lira_offline", 2)
    moved = other.posterior()
    moved.original[moved.inside] -= 3.0
    moved.shadow[moved.inside] -= 3.0
    one, two = (ATTACKS["lira_offline"]().judge(each) for each in (evidence, other))
    np.testing.assert_array_equal(one.score, two.score)
    np.testing.assert_array_equal(one.null, two.null)


def test_the_raw_logit_is_judged_per_point_by_unlearned_shadows_inside_and_original_ones_outside() -> None:
    evidence = seen_by("u_lira_raw_logit")
    seen = evidence.part("logits")
    assert isinstance(seen, Logits)
    shadow, original, target = (getattr(seen, name).astype(float) for name in ("shadow", "original", "target"))
    judge = ratio((shadow, original), (seen.inside, seen.outside), pooled=False)
    check(ATTACKS["u_lira_raw_logit"]().judge(evidence), target, shadow, seen.outside, judge)


def test_equal_shadows_give_a_finite_ratio() -> None:
    inside = np.array([[True], [True], [False], [False]])
    values = np.array([[3.0], [3.0], [1.0], [1.0]])
    for pooled in (True, False):
        found = log_likelihood_ratio(
            np.array([3.0]), np.stack([values, values]), np.stack([inside, ~inside]), pooled=pooled
        )
        assert np.isfinite(found).all() and found[0] > 0


def test_moments_stand_in_where_a_point_has_one_model_or_none() -> None:
    values = np.array([[1.0, 5.0, 9.0], [3.0, 7.0, 9.0]])
    side = np.array([[True, True, False], [True, False, False]])
    mean, variance = moments(values, side, pooled=False)
    assert mean.tolist() == [2.0, 5.0, 3.0]  # the third point has nobody: the mean of the side
    assert variance.tolist() == [1.0, 2.0, 2.0]  # two models: their own; else two squares over one degree of freedom
    assert moments(values, side & False, pooled=True)[1].tolist() == [SMALLEST_VARIANCE] * 3


# -------------------------------------------------------------------------------------------------------- RULI


@pytest.mark.parametrize("kept", [False, True])
def test_ruli_is_the_ratio_of_kernel_densities_of_bandwidth_one(kept: bool) -> None:
    evidence = make_evidence(3, K, models=8, kept=kept, kinds=ATTACKS["ruli"].reads)[0]
    seen = evidence.posterior()
    _, shadow, target = logits_of(seen)

    def density(value: float, own: list[float]) -> float:
        return float(gaussian_kde(own, bw_method=1 / np.std(own, ddof=1)).logpdf(value)[0])

    def judge(value: float, k: int, models: list[int]) -> float:
        unlearned, held_out = (
            density(value, [shadow[i, k] for i in models if side[i, k]]) for side in (seen.inside, seen.outside)
        )
        return unlearned - held_out

    check(ATTACKS["ruli"]().judge(evidence), target, shadow, seen.outside, judge)


def test_a_kernel_density_far_from_every_sample_is_finite_and_without_samples_is_nothing() -> None:
    side = np.array([[True, False]])
    found = log_density(np.array([1000.0, 0.0]), np.zeros((1, 2)), side)
    assert abs(found[0] - (-500_000 - np.log(np.sqrt(2 * np.pi)))) < 1e-6
    assert found[1] == -np.inf


# -------------------------------------------------------------------------------------------------------- RMIA


def slow_rmia(own: float, point: np.ndarray, sides: np.ndarray, beside: np.ndarray, population: np.ndarray) -> float:
    """Return mean over z of LR/(LR + 1): ``own`` log p(x|θ), ``point`` (m,) of the references, ``sides`` (2, m),
    ``beside`` (Z,) log p(z|θ), ``population`` (m, Z) of the references."""
    p = np.exp(point)
    expected = 0.5 * (np.mean(p[sides[0]]) + np.mean(p[sides[1]]))
    total = 0.0
    for z in range(len(beside)):
        likelihood_ratio = (np.exp(own) / expected) / (np.exp(beside[z]) / np.mean(np.exp(population[:, z])))
        total += likelihood_ratio / (likelihood_ratio + 1)
    return total / len(beside)


@pytest.mark.parametrize("kept", [False, True])
def test_rmia_compares_every_candidate_with_every_population_point(kept: bool) -> None:
    evidence = make_evidence(4, K, models=8, kept=kept, kinds=ATTACKS["rmia"].reads)[0]
    seen, beside = evidence.posterior(), evidence.part("population")
    assert isinstance(beside, Population)
    shadow = seen.shadow.astype(float)[:, np.arange(K), seen.labels]
    target = seen.target.astype(float)[np.arange(K), seen.labels]
    points, own = beside.shadow.astype(float), beside.target.astype(float)[0]
    sides = np.stack([seen.inside, seen.outside])
    finding = ATTACKS["rmia"]().judge(evidence)
    wanted = []
    for k in range(K):
        places = [np.arange(len(shadow)) != i for i in np.flatnonzero(seen.outside[:, k])]
        each = [slow_rmia(target[k], shadow[kept, k], sides[:, kept, k], own, points[kept]) for kept in places]
        wanted.append(np.mean(each))
    np.testing.assert_allclose(finding.score, wanted, rtol=0, atol=TOLERANCE)
    wanted = []
    for i in range(len(shadow)):
        others = np.arange(len(shadow)) != i
        wanted += [
            slow_rmia(shadow[i, k], shadow[others, k], sides[:, others, k], points[i], points[others])
            for k in range(K)
            if seen.outside[i, k]
        ]
    np.testing.assert_allclose(finding.null, wanted, rtol=0, atol=TOLERANCE)


def test_the_soft_form_orders_the_points_of_a_target_as_the_papers_share_does() -> None:
    rng = np.random.default_rng(0)
    candidates, population = rng.normal(size=200), rng.normal(size=37)
    hard = (candidates[:, None] >= population).mean(1)
    soft = dominance(candidates, population)
    higher = hard[:, None] > hard[None]
    assert higher.any() and (soft[:, None] > soft[None])[higher].all()
    assert len(np.unique(soft)) == 200 > len(np.unique(hard))


def test_every_candidate_is_compared_with_what_its_own_target_says_of_the_population() -> None:
    whole = make_evidence(5, 10, kinds=ATTACKS["rmia"].reads)[0]
    seen, beside = whole.posterior(), whole.part("population")
    assert isinstance(beside, Population)
    owner = np.array([7, 3] * 5)
    answers = np.stack([beside.target[0], beside.target[0] - 2.0])
    both = Population(beside.shadow, answers, np.array([3, 7]), owner)
    found = ATTACKS["rmia"]().judge(Evidence({"posteriors": seen, "population": both}))
    for index, target in zip((3, 7), answers, strict=True):
        alone = Population(beside.shadow, target[None], np.array([0]), np.zeros(10, np.int64))
        wanted = ATTACKS["rmia"]().judge(Evidence({"posteriors": seen, "population": alone}))
        np.testing.assert_array_equal(found.score[owner == index], wanted.score[owner == index])
        np.testing.assert_array_equal(found.null, wanted.null)
    assert found.queries.tolist() == [1 + 6] * 10  # 30 population points shared by five candidates of a target


def test_shares_of_the_population_are_rounded_up_and_cover_every_query() -> None:
    owner = np.array([0] * 7 + [1] * 2)
    part = Population(np.zeros((4, 10), np.float32), np.zeros((2, 10), np.float32), np.array([0, 1]), owner)
    assert part.queries.tolist() == [2] * 7 + [5] * 2
    assert all(part.queries[owner == index].sum() >= 10 for index in (0, 1))
