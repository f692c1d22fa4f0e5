"""Attacks that fit one classifier of features to the shadows' members and non-members."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Floats, Labels
from audits.errors import BadInput
from audits.gnq.answers import PoolAnswers
from audits.gnq.attacks.base import PoolAttack, needed
from audits.seeds import Purpose, derive_seed, numpy_generator

ROWS = 8000
"""At most so many rows teach a classifier: a fit with 145 features takes .4 s on one core."""


class LearnedAttack(PoolAttack):
    """A classifier of features that learns from rows (shadow, point) in against out."""

    learned: ClassVar[bool] = True

    @abstractmethod
    def features(self, answers: PoolAnswers, labels: Labels) -> NDArray[Any]:
        """Return the features (M, 2n, F) of every model and point."""

    def scores(
        self, targets: PoolAnswers, shadows: PoolAnswers | None, labels: Labels, group: str, seed: int
    ) -> Floats:
        """Return the classifier's log-odds (T, 2n) of "member"."""
        known = needed(shadows, self.name)
        taught, asked = self.features(known, labels), self.features(targets, labels)
        if taught.shape[1:] != asked.shape[1:]:
            raise BadInput(
                f"attack {self.name} learns from features {taught.shape[1:]} but is asked about {asked.shape[1:]}; "
                "give targets and shadows of one architecture and pool"
            )
        members, others = known.sides(group)
        if not members.any() or not others.any():
            raise BadInput(
                f"attack {self.name} learns from members and non-members of group {group!r}, but the shadows have "
                "none on one side; judge another group"
            )
        drawn = numpy_generator(derive_seed(seed, self.name, group)).permutation(np.flatnonzero(members | others))
        rows = np.unravel_index(drawn[:ROWS], members.shape)
        return log_odds(taught[rows], members[rows], asked, seed)


def log_odds(rows: NDArray[Any], members: NDArray[np.bool_], asked: NDArray[Any], seed: int) -> Floats:
    """Return the log-odds of "member" (...) of ``asked`` (..., F), learned from ``rows`` (N, F) and ``members`` (N,).

    Boosted trees: they read the order of a feature's values only, so that neither its scale nor its skew matters (loss
    and norms range over many powers of ten). Settings were chosen on two pools of fashion14, which are not on record.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    trees = HistGradientBoostingClassifier(
        max_iter=60,
        learning_rate=0.08,
        max_leaf_nodes=6,
        min_samples_leaf=50,
        max_features=0.3,
        early_stopping=False,
        random_state=derive_seed(seed, Purpose.TREES) % 2**32,
    ).fit(rows, members)
    found: Floats = trees.decision_function(asked.reshape(-1, asked.shape[-1])).reshape(asked.shape[:-1])
    return found
