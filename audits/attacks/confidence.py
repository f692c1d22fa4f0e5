"""What likelihood-ratio attacks read of a posterior, and how they judge the shadows that make their null."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.attacks.base import Floats
from audits.evidence.parts import Bools


def scaled(log_probabilities: NDArray[Any], labels: NDArray[np.int64]) -> Floats:
    """Return log p_y − log Σ_{j≠y} p_j (…, K) of log-probabilities (…, K, classes) for true classes ``labels`` (K,).

    It is log(p_y/(1 − p_y)), stable where p_y is near 1 or 0 (arXiv 2112.03570, section IV).
    """
    from scipy.special import logsumexp

    values = log_probabilities.astype(np.float64)
    true = np.arange(values.shape[-1]) == labels[:, None]
    own = np.where(true, values, 0.0).sum(-1)
    found: Floats = own - logsumexp(np.where(true, -np.inf, values), axis=-1)
    return found


def of_true_class(log_probabilities: NDArray[Any], labels: NDArray[np.int64]) -> Floats:
    """Return log p_y (…, K) in float64 of log-probabilities (…, K, classes) for true classes ``labels`` (K,)."""
    found: Floats = log_probabilities[..., np.arange(len(labels)), labels].astype(np.float64)
    return found


def judged_outside(answers: Floats, outside: Bools, score: Callable[[Floats, Bools], Floats]) -> Floats:
    """Return the scores of every model at the points that it never saw, each judged by all the other models.

    ``answers``: (m, K) of the models; ``outside``: (m, K); ``score``: (answers (K,), judges (m,)) → (K,).
    The result runs over models, then over their points.
    """
    others = ~np.eye(len(answers), dtype=bool)
    found = [score(answers[model], others[model])[outside[model]] for model in range(len(answers))]
    return np.concatenate(found)
