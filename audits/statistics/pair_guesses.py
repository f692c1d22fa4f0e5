"""An attack's guesses about pairs of points of which a model was trained on one: what ``epsilon_bound`` reads."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits.arrays import Bools, Floats
from audits.errors import BadInput
from audits.seeds import numpy_generator

SHARES = (1.0, 0.1)
"""Shares of the pairs that are guessed about, those of largest difference: fixed here, before any model is asked."""


@dataclass(frozen=True)
class PairGuesses:
    """``right`` of ``guesses`` about ``pairs`` pairs in all."""

    pairs: int
    guesses: int
    right: int


def pair_guesses(scores: Floats, half: Bools, share: float, seed: int) -> PairGuesses:
    """Return how often the point with the larger score is the one that the model was trained on.

    ``scores`` (2n,): higher = more like a member; ``half`` (2n,) bool: the n points trained on. Each of these is
    matched with one of the others at random, by ``seed``; given the pairs, who is in is one fair coin each. Guessed are
    round(``share`` · n) pairs, at least one, whose scores differ most. Among pairs that differ alike chance takes its
    pick, and where scores are equal a coin is thrown, both by ``seed``: the order of points may tell who is in. Raises
    BadInput for shapes that do not fit, halves that are none, scores that are not numbers and shares outside (0, 1].
    """
    if scores.shape != half.shape or half.ndim != 1 or 2 * int(half.sum()) != len(half):
        raise BadInput(f"scores {scores.shape} and half {half.shape}; allowed: (2n,) twice, with n points in the half")
    if np.isnan(scores).any() or not 0 < share <= 1:
        raise BadInput(f"share is {share} and scores may hold NaN; allowed: above 0 and at most 1, and numbers")
    generator = numpy_generator(seed)
    inside, outside = np.flatnonzero(half), generator.permutation(np.flatnonzero(~half))
    coins, turn = generator.random(len(inside)) < 0.5, generator.random(len(inside))
    # Infinities of one sign differ by nothing, and are no guess at all.
    equal = scores[inside] == scores[outside]
    apart = np.where(equal, 0.0, scores[inside] - np.where(equal, 0.0, scores[outside]))
    made = np.lexsort((turn, -np.abs(apart)))[: max(1, round(share * len(inside)))]
    right = np.where(equal, coins, apart > 0)[made]
    return PairGuesses(len(inside), len(made), int(right.sum()))
