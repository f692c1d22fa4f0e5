"""All N values of gradient uniqueness from one factorisation, against one pseudo-inverse (or factorisation) a point.

The definition decomposes, for every point, the (N − 1) × P gradients of the others (the paper inverts their P × P
matrix S, which takes longer where P exceeds N); against it stands our whole way from the same gradients, K = G Gᵀ
included. The other plain forms get the Gram matrix K of random gradients, N < P, and use N × N matrices only: they
leave one point out, decompose the rest of K and read off that point's value, point after point. Random gradients are
independent, so that mode pinv needs no eigendecomposition; one form gets gradients of which half are made up of four.
At large N plain forms run on a few points, spread over all, and their time for N points is N times the mean: every
point's problem has the same size, so that nothing but the noise of the few is extrapolated. Before anything is timed
the forms must agree to 1e-8.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from audits.seeds import derive_seed, numpy_generator
from audits.uniqueness import uniqueness_from_gram
from benchmarks.record import described, median, number, rounded, table

Floats = NDArray[np.float64]

SIZES = {64: 64, 256: 16, 1024: 4}
"""N: points that the plain forms are timed on in every repeat."""

QUICK_SIZES = {16: 4, 24: 4}

FROM_GRADIENTS = {64: 8, 256: 2, 1024: 1}
"""N: points that the definition is timed on, which takes minutes for all."""

PARAMETERS = 4
"""P in units of N."""

RIDGE = 1e-3
TOLERANCE = 1e-8


DEPENDENT = "pinv of dependent gradients"
DEFINITION = "definition, one pseudo-inverse of (N − 1) × P gradients a point"


def definition(G: Floats, j: int) -> float:
    """Return g_jᵀ S⁺ g_j from the gradients themselves: S = AᵀA of the others A, so ‖(A⁺)ᵀ g_j‖² (one SVD of A)."""
    return float(np.sum((np.linalg.pinv(np.delete(G, j, 0)).T @ G[j]) ** 2))


def whole_way(G: Floats) -> Floats:
    """Return all values in mode pinv from the same gradients, K included."""
    return uniqueness_from_gram(G @ G.T, "pinv")


def pseudo_inverse(K: Floats, j: int, penalty: float) -> float:
    """Return the definition's value of point j: coefficients of its gradient on the others by ``numpy.linalg.pinv``."""
    others, products = left_out(K, j)
    return float(np.sum((np.linalg.pinv(others) @ products) ** 2))


def symmetric_pseudo_inverse(K: Floats, j: int, penalty: float) -> float:
    """Return the same by an eigendecomposition, which is cheaper and asks NumPy to know that K is symmetric."""
    others, products = left_out(K, j)
    return float(np.sum((np.linalg.pinv(others, rcond=1e-12, hermitian=True) @ products) ** 2))


def dependent_pseudo_inverse(K: Floats, j: int, penalty: float) -> float:
    """Return the definition's value of point j where the rest of K has no inverse: with NumPy told what is zero."""
    others, products = left_out(K, j)
    return float(np.sum((np.linalg.pinv(others, rcond=1e-10) @ products) ** 2))


def ridge_pseudo_inverse(K: Floats, j: int, penalty: float) -> float:
    """Return the ridge value of point j from the pseudo-inverse of the rest of K + λI."""
    others, products = left_out(K, j)
    others.flat[:: len(others) + 1] += penalty
    return float((K[j, j] - products @ np.linalg.pinv(others) @ products) / penalty)


def ridge_cholesky(K: Floats, j: int, penalty: float) -> float:
    """Return the same by a Cholesky factor a point: the cheapest way that is still one a point."""
    others, products = left_out(K, j)
    others.flat[:: len(others) + 1] += penalty
    factor = torch.linalg.cholesky(torch.from_numpy(others))
    half = torch.linalg.solve_triangular(factor, torch.from_numpy(products)[:, None], upper=False)
    return float((K[j, j] - float(half.square().sum())) / penalty)


def left_out(K: Floats, j: int) -> tuple[Floats, Floats]:
    """Return K without row and column j (N − 1, N − 1), and the products of point j with the others (N − 1,)."""
    others = np.delete(np.arange(len(K)), j)
    return K[np.ix_(others, others)], K[others, j]


class Plain(Protocol):
    """The value of point ``j`` from a Gram matrix, by a form that computes one point at a time."""

    def __call__(self, K: Floats, j: int, penalty: float) -> float:
        """Return the value."""
        raise NotImplementedError


PLAIN: dict[str, tuple[str, Plain]] = {
    "pinv, one pseudo-inverse a point": ("pinv", pseudo_inverse),
    "pinv, one symmetric pseudo-inverse a point": ("pinv", symmetric_pseudo_inverse),
    "pinv of dependent gradients, one pseudo-inverse a point": (DEPENDENT, dependent_pseudo_inverse),
    "ridge, one pseudo-inverse a point": ("ridge", ridge_pseudo_inverse),
    "ridge, one Cholesky factor a point": ("ridge", ridge_cholesky),
}


def measure(quick: bool, repeats: int) -> dict[str, Any]:
    """Return {"sizes": [...]}, one entry for every N; raises ``SystemExit`` when two forms disagree."""
    return {"sizes": [measure_size(n, few, repeats) for n, few in (QUICK_SIZES if quick else SIZES).items()]}


def measure_size(n: int, few: int, repeats: int) -> dict[str, Any]:
    """Return the CPU seconds for all ``n`` points by every form, median over repeats, and the ratios of each repeat."""
    G = numpy_generator(derive_seed(0, "benchmark gnq uniqueness", n)).normal(size=(n, PARAMETERS * n))
    half = G.copy()
    half[n // 2 :] = numpy_generator(derive_seed(1, "benchmark gnq uniqueness", n)).normal(size=(n - n // 2, 4)) @ G[:4]
    grams = {"pinv": G @ G.T, "ridge": G @ G.T, DEPENDENT: half @ half.T}
    penalty = RIDGE * float(np.trace(grams["ridge"])) / n
    asked, fewer = (np.linspace(0, n - 1, count).astype(int) for count in (few, min(few, FROM_GRADIENTS.get(n, few))))
    difference = max(largest_difference(grams, asked, penalty), largest_of_definition(G, fewer))
    if not difference <= TOLERANCE:
        raise SystemExit(f"N = {n}: the forms differ by {difference:.1e} of the value; allowed: {TOLERANCE:.0e}")
    seconds: dict[str, list[float]] = {name: [] for name in ("whole", *grams, DEFINITION, *PLAIN)}
    for turn in range(repeats):
        print(f"N = {n}: repeat {turn + 1} of {repeats}", file=sys.stderr)
        seconds["whole"].append(one_call(lambda: whole_way(G)))
        for mode, K in grams.items():
            seconds[mode].append(one_call(partial(ours, mode, K)))
        seconds[DEFINITION].append(all_points(lambda j: definition(G, j), fewer, n))
        for name, (mode, form) in PLAIN.items():
            seconds[name].append(all_points(partial(form, grams[mode], penalty=penalty), asked, n))
    against = {DEFINITION: "whole", **{name: mode for name, (mode, _) in PLAIN.items()}}
    return {
        "n": n,
        "parameters": PARAMETERS * n,
        "points": {name: len(fewer if name == DEFINITION else asked) for name in against},
        "largest_difference": rounded(difference),
        "seconds": {name: median(found) for name, found in seconds.items()},
        "against": against,
        "ratio": {name: ratio(seconds[name], seconds[fast]) for name, fast in against.items()},
    }


def ours(mode: str, K: Floats) -> Floats:
    """Return all values of a Gram matrix in one of the modes that ``PLAIN`` names."""
    return uniqueness_from_gram(K, "pinv" if mode == DEPENDENT else mode, RIDGE)


def one_call(form: Callable[[], object]) -> float:
    """Return the CPU seconds of all values at once: the mean of as many calls as fill a twentieth of a second."""
    start, calls = time.process_time(), 0
    while not calls or time.process_time() - start < 0.05:
        form()
        calls += 1
    return (time.process_time() - start) / calls


def all_points(form: Callable[[int], object], asked: NDArray[np.int_], n: int) -> float:
    """Return the CPU seconds of a plain form for ``n`` points: those for the points ``asked``, scaled."""
    start = time.process_time()
    for j in asked:
        form(int(j))
    return (time.process_time() - start) / len(asked) * n


def largest_of_definition(G: Floats, asked: NDArray[np.int_]) -> float:
    """Return the largest relative difference of the definition from our whole way; also the first, untimed run."""
    fast = whole_way(G)
    return max(abs(definition(G, int(j)) / float(fast[j]) - 1) for j in asked)


def largest_difference(grams: dict[str, Floats], asked: NDArray[np.int_], penalty: float) -> float:
    """Return the largest relative difference of a plain form from ours; also the first, untimed run of all."""
    fast = {mode: ours(mode, K) for mode, K in grams.items()}
    return max(
        abs(form(grams[mode], int(j), penalty) / float(fast[mode][j]) - 1)
        for mode, form in PLAIN.values()
        for j in asked
    )


def ratio(plain: list[float], fast: list[float]) -> dict[str, float]:
    """Return median, least and most of the ratios of the repeats."""
    found = [one / other for one, other in zip(plain, fast, strict=True)]
    return {"median": median(found), "least": rounded(min(found)), "most": rounded(max(found))}


def tables(record: dict[str, Any]) -> str:
    """Return the record as Markdown."""
    rows = []
    for size in record["sizes"]:
        for name, fast in size["against"].items():
            found = size["ratio"][name]
            rows.append(
                [
                    str(size["n"]),
                    name,
                    f"{number(size['seconds'][name])}{'' if size['points'][name] == size['n'] else ' *'}",
                    number(size["seconds"][fast]),
                    f"**{number(found['median'])}** ({number(found['least'])}–{number(found['most'])})",
                ]
            )
    header = [
        "N",
        "plain form",
        "its CPU seconds for N points",
        "CPU seconds of one factorisation",
        "ratio (least–most)",
    ]
    note = "\n\n\\* N times the mean of a few points: " + ", ".join(
        f"{min(size['points'].values())} (definition) or {max(size['points'].values())} of {size['n']}"
        for size in record["sizes"]
    )
    sizes = ", ".join(f"{size['parameters']} at N = {size['n']}" for size in record["sizes"])
    taken = f". The definition is compared with our whole way from the same gradients, K = G Gᵀ included; P = {sizes}."
    return described(record) + "\n" + table(header, rows) + note + taken


if __name__ == "__main__":
    raise SystemExit("run python -m benchmarks.gnq --part uniqueness")
