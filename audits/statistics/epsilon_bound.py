"""A lower bound on the ε of a private training, from an attack's guesses about one model.

Points of one model are no independent trials: it was trained on all of them at once. What is independent are the coins
that decided who is in. Steinke, Nasr and Jagielski (arXiv 2305.08846, theorem 5.2) bound how many of m independent fair
coins can be guessed from an output that is (ε', δ')-private in each coin; attack, model and data may be anything.

Here a model is trained on n of 2n points, so that single memberships are no independent coins. But a half drawn at
random is, given a matching of the points drawn at random, one fair coin a pair: which of the two is in. To flip it
removes a point and adds another, so that training that is (ε, δ)-private under adding or removing one point is
(2ε, (1 + e^ε)·δ)-private in a coin, by group privacy. Assumed beside it: halves are drawn uniformly, the matching and
everything the attack has learned do not depend on who is in, and so many guesses are made as was fixed beforehand.

The price of what is assumed so little: ε is halved, and a bound from n pairs stays below ½·log(n/log(1/(1 − level))).
Far below the accountant's ε it says nothing against that; above, that training or accounting is broken.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np

from audits.errors import BadInput

STEPS = 400
"""Values of ε that are tried between 0 and what the guesses would show without δ; the bound is rounded down to one."""

MOST_TRIED = 20_000
"""Pairs up to which all values are tried in turn; with more the first that is not ruled out is found by halving."""


def epsilon_bound(right: int, guesses: int, coins: int, delta: float, level: float = 0.95) -> float:
    """Return the largest ε ≥ 0 that ``right`` of ``guesses`` about pairs rule out at confidence ``level``.

    ``coins``: pairs in all, guessed or not; ``delta``: δ of the guarantee. In at least a share ``level`` of audits the
    bound is at most the true ε, if the module's assumptions hold. At δ = 0 it is ½·log(p/(1 − p)) with the one-sided
    bound p of Clopper and Pearson on the share of right guesses. Raises BadInput for counts that do not fit.
    """
    from scipy.special import betaincinv

    if not 0 <= right <= guesses <= coins or guesses == 0 or not 0 <= delta < 1 or not 0 < level < 1:
        raise BadInput(
            f"{right} right of {guesses} guesses about {coins} pairs at delta {delta:g} and level {level:g}; allowed: "
            "right ≤ guesses ≤ pairs, 1 guess or more, delta from 0 and level between 0 and 1"
        )
    tail = 1.0 - level
    share = float(betaincinv(right, guesses - right + 1, tail)) if right else 0.0
    if share <= 0.5:
        return 0.0
    tried = np.linspace(0.0, math.log(share / (1.0 - share)) / 2, STEPS + 1)

    def likely(epsilon: float) -> bool:
        return chance_of(right, guesses, coins, float(epsilon), delta) > tail

    first = (
        bisect_left(tried, True, key=likely)
        if coins > MOST_TRIED
        else next((place for place, epsilon in enumerate(tried) if likely(epsilon)), len(tried))
    )
    return float(tried[max(0, first - 1)])


def chance_of(right: int, guesses: int, coins: int, epsilon: float, delta: float) -> float:
    """Return how probable ``right`` or more right guesses can be under (``epsilon``, ``delta``) for one point.

    β + 2·coins·δ'·max_i P(right − i ≤ W < right)/i over i ≥ 1, W binomial of ``guesses`` at e^ε'/(1 + e^ε'), β = P(W ≥
    right); ε' and δ' are those of a coin.
    """
    from scipy.stats import binom

    rate = 1.0 / (1.0 + math.exp(-2 * epsilon))
    least = float(binom.sf(right - 1, guesses, rate))
    if not delta or not right:
        return least
    below = np.cumsum(binom.pmf(np.arange(right - 1, -1, -1), guesses, rate))
    most = float((below / np.arange(1, right + 1)).max())
    return min(1.0, least + 2 * coins * (1 + math.exp(epsilon)) * delta * most)
