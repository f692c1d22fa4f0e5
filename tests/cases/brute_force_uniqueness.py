"""Gradient uniqueness as it is defined, one point after another: slow, and independent of the closed forms."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Matrix = list[list[Fraction]]


def by_svd(G: Floats, cut: float = 1e-9) -> Floats:
    """Return g_jᵀ S⁺ g_j for every row j of ``G`` (N, P), S⁺ from the other rows' singular values over ``cut``."""
    found = np.zeros(len(G))
    for j, g in enumerate(G):
        _, s, V = np.linalg.svd(np.delete(G, j, axis=0), full_matrices=False)
        kept = s > cut * max(s.max(), np.finfo(float).tiny)
        found[j] = np.sum((V[kept] @ g / s[kept]) ** 2)
    return found


def with_ridge(G: Floats, ridge: float) -> Floats:
    """Return g_jᵀ (Σ_{k≠j} g_k g_kᵀ + ridge·I)⁻¹ g_j for every row j of ``G`` (N, P), from a P × P matrix each."""
    found = np.zeros(len(G))
    for j, g in enumerate(G):
        others = np.delete(G, j, axis=0)
        found[j] = g @ np.linalg.solve(others.T @ others + ridge * np.eye(len(g)), g)
    return found


def exactly(G: Floats) -> Floats:
    """Return g_jᵀ S⁺ g_j for every row j of ``G`` (N, P) in rational numbers, where rank is no matter of rounding.

    With O the other rows and Oᵀ = B R (B its pivot columns, R the reduced form), (Oᵀ)⁺ = Rᵀ(R Rᵀ)⁻¹(Bᵀ B)⁻¹Bᵀ, and
    GNQ is the squared length of (Oᵀ)⁺ g.
    """
    rows = [[Fraction(float(v)) for v in row] for row in G]
    return np.array([_exact_one(rows[:j] + rows[j + 1 :], rows[j]) for j in range(len(rows))])


def exactly_with_ridge(G: Floats, ridge: float) -> Floats:
    """Return g_jᵀ (Σ_{k≠j} g_k g_kᵀ + ridge·I)⁻¹ g_j for every row j of ``G`` (N, P) in rational numbers."""
    rows = [[Fraction(float(v)) for v in row] for row in G]
    found = []
    for j, g in enumerate(rows):
        S = _gram(_transposed(rows[:j] + rows[j + 1 :]))
        for p in range(len(S)):
            S[p][p] += Fraction(ridge)
        found.append(float(sum(a * b for a, b in zip(g, _solved(S, g), strict=True))))
    return np.array(found)


def _exact_one(others: Matrix, g: list[Fraction]) -> float:
    reduced, pivots = _reduced(_transposed(others))
    R = reduced[: len(pivots)]
    if not pivots:
        return 0.0
    Bt = [others[k] for k in pivots]
    first = _solved(_gram(Bt), [sum(a * b for a, b in zip(row, g, strict=True)) for row in Bt])
    second = _solved(_gram(R), first)
    c = [sum(R[i][k] * second[i] for i in range(len(R))) for k in range(len(others))]
    return float(sum(v * v for v in c))


def _transposed(A: Matrix) -> Matrix:
    return [list(column) for column in zip(*A, strict=True)]


def _gram(A: Matrix) -> Matrix:
    return [[sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0)) for y in A] for x in A]


def _reduced(A: Matrix) -> tuple[Matrix, list[int]]:
    """Return the reduced row echelon form of ``A`` and its pivot columns."""
    A, pivots, row = [list(r) for r in A], [], 0
    for column in range(len(A[0])):
        at = next((i for i in range(row, len(A)) if A[i][column] != 0), None)
        if at is None:
            continue
        A[row], A[at] = A[at], A[row]
        A[row] = [v / A[row][column] for v in A[row]]
        for i in range(len(A)):
            if i != row and A[i][column] != 0:
                A[i] = [v - A[i][column] * u for v, u in zip(A[i], A[row], strict=True)]
        pivots.append(column)
        row += 1
    return A, pivots


def _solved(A: Matrix, b: list[Fraction]) -> list[Fraction]:
    reduced, _ = _reduced([[*row, value] for row, value in zip(A, b, strict=True)])
    return [row[-1] for row in reduced]
