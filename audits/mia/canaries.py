"""Canaries: points of a pool with a wrong label, the positive control of a membership audit.

A model that fits a wrong label has memorised it, so an attack that is worth anything finds canaries where models
memorise at all. They say what a null result on ordinary points is worth, and stand for no others: decisions do not rest
on them (Carlini et al., arXiv 1802.08232, plant secrets; wrong labels are this module's).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits.arrays import Bools, Labels
from audits.errors import BadInput
from audits.seeds import derive_seed, numpy_generator


@dataclass(frozen=True)
class Canaries:
    """``labels`` (2n,): the classes of a pool's points as models are taught them; ``planted`` (2n,) bool: canaries."""

    labels: Labels
    planted: Bools


def canary_labels(labels: Labels, count: int, classes: int, seed: int) -> Canaries:
    """Return ``labels`` (2n,) with ``count`` of them replaced by another class, drawn at random.

    Raises BadInput for more canaries than points, and for fewer than two classes where there are any.
    """
    if count > len(labels) or (count and classes < 2):
        raise BadInput(f"{count} canaries among {len(labels)} points of {classes} classes; lower split.canaries")
    rng = numpy_generator(derive_seed(seed, "mia canaries"))
    planted = np.zeros(len(labels), bool)
    planted[rng.permutation(len(labels))[:count]] = True
    moved = (labels + rng.integers(1, max(classes, 2), len(labels))) % max(classes, 1)
    return Canaries(np.where(planted, moved, labels).astype(np.int64), planted)
