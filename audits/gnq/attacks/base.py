"""The form of an attack on the models of a pool (``removal``): a score for each target and point.

An attack with shadows learns what members and non-members look like from models whose halves are known. Naive shadows
teach it about members and non-members at large; those that ran the pipeline about the members and non-members of the
very group that is judged. The learned attacks fit one classifier for all points and targets, so that they see no
point's own history; LiRA does. What each finds is measured in docs/results/gnq-removal.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

from audits.arrays import Floats, Labels
from audits.errors import BadInput
from audits.gnq.answers import PoolAnswers
from audits.registry import Registry

PoolAccess = Literal["posteriors", "white_box"]


POOL_ATTACKS: Registry[type[PoolAttack]] = Registry(
    "attack", "audits.gnq.attacks", own="audits.gnq.attacks.own:adapted", group="orch.attacks", prefix="gnq."
)


@dataclass(frozen=True)
class PoolAttack(ABC):
    """``access``: what it reads of a model; ``shadowed``: it needs shadows; ``learned``: it fits a classifier.

    Question: Which points of the pool does the model disclose as its training points, without a defence and behind
    each?
    """

    name: ClassVar[str]
    access: ClassVar[PoolAccess] = "posteriors"
    shadowed: ClassVar[bool] = True
    learned: ClassVar[bool] = False

    @abstractmethod
    def scores(
        self, targets: PoolAnswers, shadows: PoolAnswers | None, labels: Labels, group: str, seed: int
    ) -> Floats:
        """Return the scores (T, 2n) float64 of all points of the pool under each target.

        ``labels`` (2n,); ``group``: whose members and non-members among the shadows teach the attack; ``seed`` decides
        what it draws. It is not told who is a target's member. Raises BadInput when shadows or features are missing.
        """


def needed(shadows: PoolAnswers | None, name: str) -> PoolAnswers:
    """Return ``shadows``; BadInput where there are none."""
    if shadows is None:
        raise BadInput(f"attack {name} learns from shadows, but none are given; give naive or adaptive ones")
    return shadows
