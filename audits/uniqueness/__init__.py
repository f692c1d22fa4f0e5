"""Gradient uniqueness: how much a model trained by gradient descent could give away about each point of its pool.

Source: Abdelghafar, Aliakbarpour, Jermaine, arXiv 2510.10902. Gradient uniqueness (GNQ) of a point is how badly its
gradient is made up of the other points' gradients. Here all N values come exactly from one factorisation of the N × N
Gram matrix of the gradients, where the definition takes one pseudo-inverse a point.
"""

from audits.lazy import lazily

__getattr__, __dir__ = lazily(
    __name__,
    {
        "audits.uniqueness.accumulate": ("InBatch", "Trace", "fit_kept", "fit_traced", "steps_of"),
        "audits.uniqueness.bits": ("bits_upper", "log_uniqueness"),
        "audits.uniqueness.newcomers": ("newcomers_uniqueness",),
        "audits.uniqueness.rankings": ("RANKINGS",),
        "audits.uniqueness.scores": ("MODES", "gradient_uniqueness", "point_scores"),
        "audits.uniqueness.uniqueness": ("uniqueness_from_gram",),
        "audits.uniqueness.watching": ("train_watched",),
    },
)
