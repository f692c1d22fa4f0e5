"""Gradient uniqueness from K: the definition point by point in every rank, no wrong number without a word."""

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.errors import BadInput
from audits.gradients import gram_checks
from audits.uniqueness import pinv, ridge, uniqueness_from_gram
from audits.uniqueness.bits import bits_upper, log_uniqueness, trapezoid_weights
from audits.uniqueness.pinv import report_from_gram
from audits.uniqueness.ridge import ridge_path
from tests.cases.brute_force_uniqueness import by_svd, exactly, exactly_with_ridge, with_ridge
from tests.cases.families import as_one
from tests.cases.simulations import sizes

REGIMES = ("any", "duplicates", "scaled duplicates", "zero rows", "low rank", "low rank plus unique", "graded")


def gradients(regime, seed, n, p):
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(n, p))
    half = n // 2
    if regime == "duplicates":
        G[:half] = G[rng.integers(half, n, half)]
    elif regime == "scaled duplicates":
        G[:half] = G[rng.integers(half, n, half)] * 10.0 ** rng.uniform(-1.5, 1.5, (half, 1)) * rng.choice([-1, 1])
    elif regime == "zero rows":
        G[rng.integers(0, n, half)] = 0
    elif regime.startswith("low rank"):
        rank = max(1, min(n, p) // 2)
        G = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, p))
        if regime == "low rank plus unique":
            G[-1] += rng.normal(size=p)
    elif regime == "graded":
        G *= 10.0 ** rng.uniform(-1, 1, (n, 1))
    return G


def small_integers(seed, span=0):
    """Rows of small integers, of rank below N in most cases, each times a power of two: their K is exact."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(3, 8)), int(rng.integers(2, 8))
    G = rng.integers(-4, 5, (n, p)).astype(float)
    if seed % 3 == 0:
        G[1], G[2] = 3 * G[0], 0
    elif seed % 3 == 1:
        G[:-1, -1], G[-1, :-1], G[-1, -1] = 0, 0, 2
    return G * 2.0 ** -rng.integers(0, span + 1, (n, 1))


@given(st.sampled_from(REGIMES), st.integers(0, 10**6), st.integers(2, 14), st.integers(1, 14))
@settings(max_examples=25)
def test_pinv_is_the_definition_in_every_rank(regime, seed, n, p):
    G = gradients(regime, seed, n, p)
    report = report_from_gram(G @ G.T)
    if report.doubt:  # told, and then not given as a number
        with pytest.raises(BadInput, match="rank of K is not certain"):
            uniqueness_from_gram(G @ G.T, "pinv")
        return
    want = by_svd(G)
    # A value is known as well as the least eigenvalue that it rests on: 1e-9 where that is 1e-5 of the largest or more.
    for found in (report.gnq, uniqueness_from_gram(G @ G.T, "pinv")):
        np.testing.assert_allclose(found, want, rtol=max(1e-9, 100 * report.cut / report.smallest_kept), atol=1e-12)


@sizes(1 / 6)
def test_random_cases_agree_to_nine_digits(size):
    done, cases = 0, int(210 * size)
    for case in range(cases):
        G = gradients(REGIMES[case % len(REGIMES)], case, 4 + case % 12, [3, 6, 40][case // 7 % 3])
        report = report_from_gram(G @ G.T)
        if report.smallest_kept > 1e-5 and not report.doubt:  # else the values have fewer digits, see above
            for found in (report.gnq, uniqueness_from_gram(G @ G.T, "pinv")):
                np.testing.assert_allclose(found, by_svd(G), rtol=1e-9, atol=1e-13, err_msg=str(case))
            done += 1
    assert done >= cases - 10


def test_only_surely_independent_rows_are_read_off_a_factor():
    for regime in REGIMES:
        G = gradients(regime, 5, 8, 40)
        found = pinv.independent_uniqueness(torch.from_numpy(G @ G.T))
        assert (found is not None) == (regime in ("any", "graded")), regime
        if found is not None:
            np.testing.assert_allclose(found.numpy(), by_svd(G), rtol=1e-10)
    G = gradients("any", 5, 8, 40)
    for share in (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8):  # of its length by which the last leaves the others' span
        G[7] = G[:7].sum(0) + share * np.linalg.norm(G[7]) * (np.arange(40) == 39)
        K = torch.from_numpy(G @ G.T)
        found = pinv.independent_uniqueness(K)
        assert (found is None) == (share < 1e-2), share
        if found is not None:
            np.testing.assert_allclose(found.numpy(), by_svd(G), rtol=1e-9)


@pytest.mark.parametrize("span", [0, 8, 20])
def test_pinv_is_right_in_rational_numbers_for_norms_of_any_sizes(span):
    for seed in range(5):
        G = small_integers(seed, span)
        np.testing.assert_allclose(uniqueness_from_gram(G @ G.T, "pinv"), exactly(G), rtol=1e-9, atol=1e-25)


@given(st.sampled_from(REGIMES), st.integers(0, 10**6), st.integers(2, 14), st.integers(1, 14))
@settings(max_examples=20)
def test_ridge_is_the_definition(regime, seed, n, p):
    G = gradients(regime, seed, n, p)
    K = G @ G.T
    if not K.any():
        return
    scale = np.trace(K) / n
    for share in (1e-3, 1.0):
        want = with_ridge(G, share * scale)
        np.testing.assert_allclose(uniqueness_from_gram(K, ridge=share), want, rtol=1e-10, atol=1e-12)
        found = uniqueness_from_gram(K, ridge=share * scale, relative=False)
        np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("span", [0, 8, 20])
def test_ridge_keeps_the_digits_of_tiny_gradients(span):
    for seed in range(6):
        G = small_integers(seed, span)
        want = exactly_with_ridge(G, 2.0**-10)
        np.testing.assert_allclose(uniqueness_from_gram(G @ G.T, ridge=2.0**-10, relative=False), want, rtol=1e-10)


def test_a_path_is_its_single_ridges():
    G = gradients("low rank plus unique", 3, 12, 9)
    ridges = [1e-4, 1e-3, 0.1, 10.0]
    for relative in (True, False):
        want = [uniqueness_from_gram(G @ G.T, ridge=one, relative=relative) for one in ridges]
        np.testing.assert_allclose(ridge_path(G @ G.T, ridges, relative), want, rtol=1e-9)


@as_one(
    "G, want",
    [
        (np.tile([1.0, 2.0], (2, 1)), [1, 1]),
        (np.tile([1.0, 2.0], (6, 1)), [1 / 5] * 6),
        (np.outer([3.0, 0.5], [1.0, 1.0, 2.0]), [36, 1 / 36]),
        (np.outer([1e5, 1.0], [1.0, 2.0]), [1e10, 1e-10]),
        (np.eye(4), [0] * 4),
        (np.zeros((3, 2)), [0] * 3),
        (np.array([[0.0, 0.0], [1.0, 2.0]]), [0, 0]),
    ],
)
def test_closed_values(G, want):
    np.testing.assert_allclose(uniqueness_from_gram(G @ G.T, "pinv"), want, rtol=1e-12, atol=1e-15)


def test_a_small_ridge_tells_the_residual_of_independent_rows_and_leaves_the_others():
    rng = np.random.default_rng(0)
    G = np.zeros((9, 12))
    G[:6, :3] = rng.normal(size=(6, 3))
    G[6:] = rng.normal(size=(3, 12))
    G[8] = 0
    report = report_from_gram(G @ G.T)
    assert report.independent.tolist() == [False] * 6 + [True, True, False]
    assert report.zero.tolist() == [False] * 8 + [True]
    assert (report.rank, report.doubt) == (5, "")
    residual = [
        np.linalg.norm(g - np.delete(G, j, 0).T @ np.linalg.lstsq(np.delete(G, j, 0).T, g, rcond=1e-9)[0]) ** 2
        for j, g in enumerate(G)
    ]
    np.testing.assert_allclose(report.residual, residual, rtol=1e-10, atol=1e-20)
    for small in (1e-5, 1e-6, 1e-7):
        found = uniqueness_from_gram(G @ G.T, ridge=small, relative=False)
        # Both sides are good to 1e-13 of ‖r‖²/λ; what remains is O(λ).
        np.testing.assert_allclose(found, report.residual / small + report.gnq, rtol=1e-11, atol=300 * small)


@pytest.mark.parametrize("seed", [0, 3])
def test_no_ridge_however_small_gives_a_wrong_number_without_a_word(seed):
    G = small_integers(seed)
    told = 0
    for power in range(-70, 0, 5):
        try:
            found = uniqueness_from_gram(G @ G.T, ridge=2.0**power, relative=False)
        except BadInput as error:
            told += "hidden by rounding" in str(error)
        else:
            np.testing.assert_allclose(found, exactly_with_ridge(G, 2.0**power), rtol=1e-4)
    assert told > 0


def test_the_ridge_that_a_refusal_names_is_accepted():
    K = np.ones((5, 5))
    with pytest.raises(BadInput, match=r"ridge = 1e-20 .* give ([\d.e-]+) or more") as refusal:
        uniqueness_from_gram(K, ridge=1e-20)
    allowed = float(str(refusal.value).split("give ")[1].split()[0])
    np.testing.assert_allclose(uniqueness_from_gram(K, ridge=allowed), 0.25, rtol=1e-4)


def test_a_regular_k_takes_a_ridge_far_below_its_rounding():
    np.testing.assert_allclose(uniqueness_from_gram(np.eye(3), ridge=1e-200), 1e200, rtol=1e-12)


def test_pinv_gives_the_most_unique_point_nothing_and_ridge_the_most():
    G = np.zeros((31, 9))
    G[:30, :8] = np.random.default_rng(0).normal(size=(30, 8))
    G[30, 8] = 1
    assert uniqueness_from_gram(G @ G.T, "pinv").argmin() == 30
    found = uniqueness_from_gram(G @ G.T)
    assert found.argmax() == 30 and found[30] > 100 * np.median(found)


def test_neither_unit_nor_kind_of_array_nor_strips_change_the_values(monkeypatch):
    G = gradients("low rank plus unique", 1, 11, 6)
    G[4] = 0
    K = G @ G.T
    before = K.copy()
    frozen = K.copy()
    frozen.flags.writeable = False
    for mode in ("ridge", "pinv"):
        want = uniqueness_from_gram(K, mode)
        assert want.dtype == np.float64
        for other in (frozen, np.asfortranarray(K), torch.from_numpy(K).requires_grad_()):
            np.testing.assert_allclose(uniqueness_from_gram(other, mode), want, rtol=1e-12)
        for unit in (2.0**-1000, 2.0**900):
            np.testing.assert_allclose(uniqueness_from_gram(K * unit, mode), want, rtol=1e-12)
        with monkeypatch.context() as patch:
            patch.setattr(ridge, "COLUMNS", 4)
            patch.setattr(pinv, "ROWS", 4)
            patch.setattr(gram_checks, "TILE", 4)
            np.testing.assert_allclose(uniqueness_from_gram(K, mode), want, rtol=1e-11)
    np.testing.assert_array_equal(K, before)


def test_the_largest_and_the_smallest_k_have_values():
    for unit in (1.7e308, 1e-320):
        np.testing.assert_allclose(uniqueness_from_gram(np.eye(4) * unit), 1000, rtol=1e-9)
        np.testing.assert_allclose(ridge_path(np.eye(4) * unit, [1e-3]), 1000, rtol=1e-9)
        np.testing.assert_array_equal(uniqueness_from_gram(np.eye(4) * unit, "pinv"), 0)
    np.testing.assert_array_equal(uniqueness_from_gram(np.eye(4) * 1e-320, ridge=1.0, relative=False), 1e-320)
    np.testing.assert_allclose(uniqueness_from_gram(np.eye(4) * 1e-300, ridge=1e300), 1e-300, rtol=1e-9)


def test_a_gradient_whose_square_underflows_is_still_one_of_a_gram_matrix():
    G = np.random.default_rng(0).normal(size=(5, 9))
    G[2] *= 1e-170
    K = G @ G.T
    assert K[2, 2] == 0 and K[2, 0] != 0
    found, rest = uniqueness_from_gram(K), np.delete(np.arange(5), 2)
    assert found[2] < 1e-300
    np.testing.assert_allclose(found[rest], uniqueness_from_gram(K[np.ix_(rest, rest)]), rtol=0.3)  # λ: mean over 5, 4


def test_values_beyond_float64_are_refused_by_name():
    C = np.array([[1.0, 0.5, 0.1], [0.5, 1.0, 0.2], [0.1, 0.2, 1.0]])
    scale = np.array([1.0, 1e-155, 2.0])
    for ask in (lambda K: uniqueness_from_gram(K, "pinv"), report_from_gram):
        with pytest.raises(BadInput, match=r"GNQ of point 0 by mode pinv is beyond .* \(2 of 3 are\).* to 4.0e\+00"):
            ask(C * np.outer(scale, scale))


def test_a_rank_in_doubt_is_told():
    G = np.array([[1.0, 0, 0], [1.0, 1.5e-6, 0], [0, 0, 1.0]])
    report = report_from_gram(G @ G.T)
    assert "two sides of the cut" in report.doubt and report.doubt in report.text()
    with pytest.raises(BadInput, match="use mode='ridge'"):
        uniqueness_from_gram(G @ G.T, "pinv")
    almost = np.array([[1.0, 0], [1.0, 2.0**-36], [0, 1.0]])  # the third is made of the others, times 2**36
    assert "nearly, not surely" in report_from_gram(almost @ almost.T).doubt
    steep = np.array([[1.0, 0], [1.0, 2.0**-20], [0, 1.0]])
    report = report_from_gram(steep @ steep.T)
    np.testing.assert_allclose(report.gnq, exactly(steep), rtol=1e-3)
    assert report.doubt == "" and "3 spanned by the others, 0 independent, 0 zero" in report.text()


def test_a_negative_eigenvalue_smaller_than_the_ridge_is_found():
    G = gradients("any", 0, 12, 3)
    K = G @ G.T
    null = np.linalg.eigh(K)[1][:, 0]
    ridge_used = 1e-3 * np.trace(K) / 12
    for share in (0.5, 1e-3):
        with pytest.raises(BadInput, match="negative eigenvalue"):
            uniqueness_from_gram(K - share * ridge_used * np.outer(null, null), ridge=ridge_used, relative=False)
    uniqueness_from_gram(K - 1e-15 * np.outer(null, null))


def changed(value, at=(0, 1)):
    K = np.eye(3) + 0.5
    K[at] = value
    return K


@pytest.mark.parametrize("ask", [uniqueness_from_gram, lambda K: uniqueness_from_gram(K, "pinv"), report_from_gram])
@pytest.mark.parametrize(
    ("K", "message"),
    [
        (np.ones((3, 2)), r"shape \(3, 2\); allowed: \(N, N\)"),
        (np.ones(3), r"shape \(3,\)"),
        (np.ones((1, 1)), "of 1 point"),
        (np.eye(3, dtype=np.int64), "dtype int64; allowed: float64"),
        (np.eye(3, dtype=np.float32), "summed in float64"),
        (torch.eye(3, dtype=torch.float16), "dtype float16"),
        ([[1.0, 0.0], [0.0, 1.0]], "is a list"),
        (torch.eye(3, dtype=torch.float64).to_sparse(), "allowed: dense"),
        (changed(np.nan), "NaN or infinite"),
        (changed(np.inf, (1, 1)), "NaN or infinite"),
        (changed(0.51), "not symmetric beyond rounding"),
        (changed(-0.1, (2, 2)), r"K\[2, 2\] is -0.1"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "product of the norms"),
        (np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]]), "eigenvalue"),
    ],
)
def test_what_is_not_a_gram_matrix_is_refused(ask, K, message, monkeypatch):
    with pytest.raises(BadInput, match=message):
        ask(K)
    monkeypatch.setattr(gram_checks, "TILE", 2)
    with pytest.raises(BadInput, match=message):
        ask(K)


@pytest.mark.parametrize("at", [(0, 6), (6, 0), (3, 4), (6, 6), (5, 6)])
def test_one_wrong_entry_is_seen_in_whatever_tile_it_is(at, monkeypatch):
    monkeypatch.setattr(gram_checks, "TILE", 3)
    for value in (np.nan, np.inf, -9.0):
        K = np.eye(7) + 0.5
        K[at] = value
        with pytest.raises(BadInput, match="NaN" if value != -9 else r"symmetric|is -9"):
            uniqueness_from_gram(K)


@as_one(
    "settings, message",
    [
        ({"mode": "diagonal"}, "use gradient_uniqueness"),
        ({"mode": "rigde"}, "did you mean 'ridge'"),
        ({"ridge": 0.0}, "ridge is 0.0; allowed: a number above 0"),
        ({"ridge": -1.0}, "allowed: a number above 0"),
        ({"ridge": np.nan}, "allowed: a number above 0"),
        ({"ridge": np.inf}, "allowed: a number above 0"),
        ({"ridge": "a"}, "ridge is 'a'; allowed: a number above 0"),
        ({"ridge": None}, "ridge is None"),
        ({"mode": None}, "mode is None; allowed: ridge, pinv"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(BadInput, match=message):
        uniqueness_from_gram(np.eye(3), **settings)


def test_a_path_refuses_what_single_ridges_refuse():
    for ridges, message in (([], "one or more"), ([1e-3, 0.0], "above 0"), ([1e-3, 1e-20], "hidden by rounding")):
        with pytest.raises(BadInput, match=message):
            ridge_path(np.ones((4, 4)), ridges)
    with pytest.raises(BadInput, match="smallest eigenvalue"):
        ridge_path(np.array([[1.0, 0.9, -0.9], [0.9, 1.0, 0.9], [-0.9, 0.9, 1.0]]), [1.0])


def test_bits_are_summed_over_moments_and_never_more_than_one():
    gnq = np.array([[0.0, 1.0, 3.0], [0.0, 0.5, 255.0]])
    slow = [sum(w * 0.5 * np.log2(1 + row[j]) for w, row in zip((2.0, 0.5), gnq, strict=True)) for j in range(3)]
    np.testing.assert_allclose(log_uniqueness(gnq, [2.0, 0.5]), slow, rtol=1e-14)
    np.testing.assert_allclose(log_uniqueness(gnq), [0, 0.5 + np.log2(1.5) / 2, 5], rtol=1e-14)
    np.testing.assert_allclose(bits_upper(gnq), [0, 0.5 + np.log2(1.5) / 2, 1], rtol=1e-14)
    np.testing.assert_allclose(log_uniqueness([[1e-18]]), [1e-18 / np.log(4)], rtol=1e-12)


def test_trapezoid_weights_are_exact_for_lines():
    steps = np.array([0, 3, 4, 10])
    weights = trapezoid_weights(steps)
    np.testing.assert_allclose(weights, [1.5, 2, 3.5, 3])
    assert weights @ (2 * steps + 1) == 10**2 + 10


@as_one(
    "call, message",
    [
        (lambda: log_uniqueness([1.0, 2.0]), r"shape \(2,\); allowed: \(moments, points\)"),
        (lambda: log_uniqueness(np.ones((2, 3)), [1.0]), r"weights has shape \(1,\); allowed: \(2,\)"),
        (lambda: bits_upper([[1.0, -0.1]]), "gnq_over_time has values that are negative"),
        (lambda: bits_upper([[1.0, np.nan]]), "NaN"),
        (lambda: bits_upper([[1.0]], [-1.0]), "weights has values"),
        (lambda: trapezoid_weights([5]), "two or more"),
        (lambda: trapezoid_weights([1, 1]), "do not rise"),
    ],
)
def test_impossible_histories_are_refused(call, message):
    with pytest.raises(BadInput, match=message):
        call()


def test_a_report_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        report_from_gram(np.eye(2)).rank = 3


@pytest.mark.gpu
@pytest.mark.parametrize("mode", ["ridge", "pinv"])
def test_a_gpu_gives_the_same_values(mode):
    G = gradients("low rank plus unique", 1, 300, 40)
    K = torch.from_numpy(G @ G.T)
    np.testing.assert_allclose(uniqueness_from_gram(K.cuda(), mode), uniqueness_from_gram(K, mode), rtol=1e-8)


@as_one("seed", range(3))
@as_one("apart", [1e-5, 3e-6, 1e-6, 3e-7, 1e-7, 3e-8, 1e-8, 3e-9, 1e-9, 1e-10])
def test_rows_that_are_nearly_equal_give_the_others_right_values_or_doubt(apart: float, seed: int) -> None:
    """Two rows' difference, of which rounding of K leaves little or nothing, is what explains the others."""
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((12, 40))
    G[1] = G[0] + apart * rng.standard_normal(40)
    report = report_from_gram(G @ G.T)
    wanted = []
    for j in range(len(G)):
        coefficients = np.linalg.lstsq(np.delete(G, j, 0).T, G[j], rcond=1e-15)[0]
        wanted.append(coefficients @ coefficients)
    right = np.allclose(report.gnq, wanted, rtol=0.05)
    assert right or report.doubt
    if not right:
        with pytest.raises(BadInput, match="rank of K is not certain"):
            uniqueness_from_gram(G @ G.T, mode="pinv")


@pytest.mark.parametrize("seed", range(3))
def test_rows_that_are_equal_leave_no_doubt(seed: int) -> None:
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((12, 40))
    G[1] = G[0]
    report = report_from_gram(G @ G.T)
    assert not report.doubt and report.gnq[:2] == pytest.approx([1, 1]) and report.gnq[2:].max() < 10
