"""p-values for reference models that all draw from one pool of the attacker's.

Reference models know the pool B in common; the target drew its points elsewhere. Take a statistic that is a sum of
influences of the points trained on, to first order, of variance V under n points drawn anew. Reference models, n draws
with replacement from B, have N(m_B, V), where m_B itself lies N(0, V·n/|B|) around its mean; a model that never saw the
candidate has N(0, V) on other points. Among the reference models it therefore varies by V·(1 + n/|B|), and ranks that
take V for that say "unusual" too often: at |B| = n and a promised 5 % 12 % of the time, at 15 n 5.6 %. Dividing the
normal score of p by √(1 + n/|B|) undoes it. The map is increasing, so p still depends on ranks alone. Not of the paper,
which draws from a pool of about one training set and uses raw ranks.

What it is not: it takes all of V to come from the points drawn from B. Initial weights, the order of the points and
the other side of a transfer, whose data all models share, vary too, so that p-values are a little too large where these
matter. It does not undo a choice of candidates by the same reference models (``reference_loss``): what they happen to
find hard is a little easier for everybody else. And it does not make up for a pool of few training sets, from which
repeated points make reference models worse at everything: ``pool_warning`` warns all the same. The control on null
models shows what is left.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from audits.arrays import Floats
from audits.errors import BadInput
from audits.tmia.p_values import attained_level, check_level

NO_CORRECTION = math.inf
"""A pool of so many training sets that nothing has to be corrected: p-values are the raw ranks."""

ROUNDING = 1e-12
"""Added to a raw level, so that a β copied from a corrected p-value is reached by it."""
POOL_FACTOR = 10
"""Training sets in a pool below which it is warned of."""
MOST_MODELS = 10_000
"""More reference models than this are not proposed; a larger pool is."""


def pool_sets_of(pool: int, train_size: int, *, corrected: bool) -> float:
    """Return the training sets that a pool holds, |B|/n, or ``NO_CORRECTION`` where raw ranks are asked for."""
    return pool / train_size if corrected else NO_CORRECTION


def pool_warning(pool_size: int, n: int, n_ref: int) -> str:
    """Return a warning when reference models of ``n`` points each share a pool under 10 n points, else "".

    It says at which rate raw ranks call non-members at a promised 5 %, to first order; what the correction leaves is
    measured in docs/results/tmia-attack-1.md.
    """
    if min(pool_size, n, n_ref) < 1:
        raise BadInput(f"pool_size, n and n_ref are {pool_size}, {n} and {n_ref}; allowed: 1 or more each")
    if pool_size >= POOL_FACTOR * n:
        return ""
    inflated = float(corrected_p(0.05, pool_size / n))
    return (
        f"the {n_ref} reference models draw {n} points each from a pool of {pool_size}, {pool_size / n:.2g} times as "
        f"many, so that raw ranks of 5 % come up in about {inflated:.1%} of non-members, and points drawn again make "
        "reference models worse, which audit.pool_correction does not undo; raise split.attacker_points to "
        f"{POOL_FACTOR * n} or more, or train on {pool_size // POOL_FACTOR} or fewer, and read the rate on null models "
        "beside every result"
    )


def spread(pool_sets: float) -> float:
    """Return √(1 + 1/``pool_sets``) for a pool of ``pool_sets`` = |B|/n training sets, 1 without correction."""
    if not pool_sets > 0:
        raise BadInput(f"pool_sets is {pool_sets}; allowed: above 0 (size of the attacker's pool over that of a set)")
    return math.sqrt(1 + 1 / pool_sets)


def corrected_p(p: ArrayLike, pool_sets: float) -> Floats:
    """Return raw p-values as if the reference models had shared no pool: Φ(Φ⁻¹(p)/√(1 + n/|B|)), same shape, NaN stays.

    Larger than p below one half, which is where tests are made; strictly increasing. p itself without correction.
    """
    raw = np.asarray(p, np.float64)
    return raw if pool_sets == NO_CORRECTION else stretched(raw, 1 / spread(pool_sets))


def raw_level(beta: float, pool_sets: float) -> float:
    """Return the raw p-value whose corrected one is ``beta``: p ≤ this is corrected p ≤ ``beta``."""
    if not 0 < beta < 1:
        raise BadInput(f"beta is {beta}; allowed: between 0 and 1")
    return beta if pool_sets == NO_CORRECTION else float(stretched(beta, spread(pool_sets))) + ROUNDING


def stretched(p: ArrayLike, factor: float) -> Floats:
    """Return p-values whose normal scores are ``factor`` times those of ``p``."""
    from scipy.special import ndtr, ndtri

    found: Floats = ndtr(ndtri(np.asarray(p, np.float64)) * factor)
    return found


def attained(beta: float, n_ref: int, pool_sets: float) -> float:
    """Return the largest corrected rank p-value of ``n_ref`` reference models that is ≤ ``beta``."""
    if pool_sets == NO_CORRECTION:
        part, whole = attained_level(beta, n_ref)
        return part / whole
    check_corrected_level(beta, n_ref, pool_sets)
    ranks = np.arange(1, n_ref + 2) / (n_ref + 1)
    return float(corrected_p(ranks[ranks <= raw_level(beta, pool_sets)][-1], pool_sets))


def smallest(n_ref: int, pool_sets: float) -> float:
    """Return the smallest corrected p-value that ``n_ref`` reference models can give."""
    return float(corrected_p(1 / (n_ref + 1), pool_sets))


def check_corrected_level(beta: float, n_ref: int, pool_sets: float) -> None:
    """Raise BadInput where no corrected p-value of ``n_ref`` reference models can be ≤ ``beta``; says what can."""
    if pool_sets == NO_CORRECTION:
        check_level(beta, n_ref)
        return
    level, least = raw_level(beta, pool_sets), smallest(n_ref, pool_sets)
    if 1 / (n_ref + 1) <= level:
        return
    needed = math.ceil(1 / level) - 1
    more = f"raise n_ref to {needed} or more, or " if needed <= MOST_MODELS else ""
    raise BadInput(
        f"beta = {beta:g} cannot be reached with n_ref = {n_ref} and a pool of {pool_sets:.3g} training sets (the "
        f"smallest p-value is {least:.3g}); {more}take a larger pool, or a beta of {math.ceil(least * 1e4) / 1e4:g} or "
        "more"
    )
