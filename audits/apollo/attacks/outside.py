"""Attacks that judge a point by shadows that never saw it, and the target exactly as they judge one of those.

A null model is judged by all models but itself. Were the target judged by all, it would have one reference more, its
scores would be less extreme than the null and found rates too low. So the target takes the place of a null model: it is
judged by the very references that judge that one, which makes both exchangeable where the target never saw the point.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from audits.apollo.attacks.base import Finding
from audits.arrays import Bools, Floats, Ids

Score = Callable[[Floats, Bools], Floats]
"""From answers and judges (m,) bool to scores (K,)."""


def judged_alike(asked: Floats, answers: Floats, outside: Bools, score: Score, queries: NDArray[np.int32]) -> Finding:
    """Return the finding of a target's answers ``asked`` (K,) and of ``answers`` (m, K) of models ``outside`` (m, K).

    The null runs over models, then over the points that they never saw.
    """
    return Finding.of_parts([(in_places(asked, outside, score), judged_outside(answers, outside, score))], queries)


def judged_outside(answers: Floats, outside: Bools, score: Score) -> Floats:
    """Return the scores of every model at the points that it never saw, each judged by all the other models."""
    found = [
        score(own, kept)[seen] for own, kept, seen in zip(answers, all_but_one(len(outside)), outside, strict=True)
    ]
    return np.concatenate(found)


def in_places(asked: Floats, outside: Bools, score: Score) -> Floats:
    """Return the target's scores (S, K) in the places of the S models of ``stand_ins``."""
    found = np.stack([score(asked, kept) for kept in all_but_one(len(outside))])
    return np.take_along_axis(found, stand_ins(outside), axis=0)


def stand_ins(outside: Bools) -> Ids:
    """Return (S, K): the models of ``outside`` (m, K) that never saw point k, in order, one a row.

    S is the most that any point has; a point with fewer starts again. A point that every model saw has model 0.
    """
    count = np.maximum(outside.sum(0), 1)
    order = np.argsort(~outside, axis=0, kind="stable")
    return np.take_along_axis(order, np.arange(count.max())[:, None] % count, axis=0)


def all_but_one(models: int) -> Bools:
    """Return (m, m): row i has all models but i."""
    return ~np.eye(models, dtype=bool)
