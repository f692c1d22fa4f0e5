"""Attacks that judge a point by shadows that never saw it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from audits.arrays import Bools, Floats


def judged_outside(answers: Floats, outside: Bools, score: Callable[[Floats, Bools], Floats]) -> Floats:
    """Return the scores of every model at the points that it never saw, each judged by all the other models.

    ``answers``: (m, K) of the models; ``outside``: (m, K); ``score``: (answers (K,), judges (m,)) → (K,).
    The result runs over models, then over their points.
    """
    others = ~np.eye(len(answers), dtype=bool)
    found = [score(answers[model], others[model])[outside[model]] for model in range(len(answers))]
    return np.concatenate(found)
