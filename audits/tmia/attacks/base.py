"""The form of a membership attack: declared access, its settings, and the ruling that it gives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from audits.arrays import Bools, Floats, Ids
from audits.errors import BadInput
from audits.registry import Registry
from audits.statistics.precision import Decide
from audits.tmia.answers import JUDGED, Answers, AttackAccess
from audits.tmia.design import Group
from audits.tmia.shared_pool import NO_CORRECTION, spread

UNSELECTED = ("all", "none")
"""Selections whose candidates are like all others: every one of them, and the selector ``none``, a random sample."""
Reading = Literal["distance", "votes", "posterior", "white_box"]

ATTACKS: Registry[type[Attack]] = Registry(
    "attack", "audits.tmia.attacks", own="audits.tmia.attacks.own:adapted", group="orch.attacks", prefix="tmia."
)


@dataclass(frozen=True)
class JudgeSettings:
    """``beta``: level of the tests; ``map``, ``degree`` and ``pairs`` of confidence reconstruction, see
    :func:`audits.tmia.reconstruction.fit` and :func:`~audits.tmia.reconstruction.make_pairs`;
    ``pool_sets``: training sets in the pool that reference models share, for which the p-values of ranked attacks are
    corrected (:mod:`audits.tmia.shared_pool`; infinite: raw ranks)."""

    beta: float = 0.05
    map: str = "logistic"
    degree: int = 3
    pairs: str = "reference"
    pool_sets: float = NO_CORRECTION

    def __post_init__(self) -> None:
        if not 0 < self.beta < 1:
            raise BadInput(f"beta is {self.beta}; allowed: between 0 and 1")
        spread(self.pool_sets)  # refuses a pool of none


@dataclass(frozen=True)
class Ruling:
    """The ruling of an attack on M candidates, ``rows`` (M,) of all K.

    By group, (models, M) each: ``statistic``, larger = more member-like, NaN where the attack failed, with the
    reference models' where the decision ranks among them; ``p`` of targets and null models, None without such a rank;
    ``decision``: called a member, never where the statistic is NaN. ``queries``: asked of a target about a point.
    """

    rows: Ids
    statistic: Mapping[Group, Floats]
    decision: Mapping[Group, Bools]
    queries: int
    p: Mapping[Group, Floats] | None = None

    def __post_init__(self) -> None:
        for group in JUDGED:
            if (self.decision[group] & np.isnan(self.statistic[group])).any():
                raise RuntimeError(f"a {group} model's candidate was called a member although its statistic is missing")


@dataclass(frozen=True)
class Attack(ABC):
    """An attack reads answers within its declared access and gives one ruling on all of them.

    ``reads``: what has to be gathered for it beside the labels at the points; ``ranked``: it ranks a model's statistic
    among the reference models'; ``has_level``: it promises a rate of false positives, beta, where it is ``pooled`` one
    over all candidates or a random sample, not over a selection; ``needs_true_label``: it is refused where y* is each
    model's own label; ``reconstructs``: it reads confidences off distances by a map, for which
    distances are asked at the attacker's own points. No attack is told who is a member, but oracles (access "oracle"),
    which bound what attacks could find.

    Question: Was the candidate in the training set in question: the model's own (modes I and III), or its teacher's
    (mode II)?
    """

    name: ClassVar[str]
    access: ClassVar[AttackAccess]
    reads: ClassVar[tuple[Reading, ...]]
    ranked: ClassVar[bool] = False
    has_level: ClassVar[bool] = False
    pooled: ClassVar[bool] = False
    needs_true_label: ClassVar[bool] = False
    reconstructs: ClassVar[bool] = False

    def judge(self, answers: Answers, settings: JudgeSettings, seed: int) -> Ruling:
        """Return the ruling of this attack, which is shown no more of ``answers`` than its access allows.

        ``seed`` decides what an attack draws. Raises BadInput where an answer that it reads is missing, and where it
        needs the true class but y* is each model's own.
        """
        view = answers.view(self.access)
        if self.needs_true_label and not view.known_labels().star_is_true:
            raise BadInput(
                f"attack {self.name} needs the true class, but y* is each model's own label here; "
                f"leave {self.name} out or set audit.star to true"
            )
        return self.find(view, settings, seed)

    @abstractmethod
    def find(self, view: Answers, settings: JudgeSettings, seed: int) -> Ruling:
        """Return the ruling from what this attack may see."""

    @classmethod
    def decider(cls, statistic: Floats, reference: Floats, beta: float, pool_sets: float = NO_CORRECTION) -> Decide:
        """Return the attack's decisions as a function of the reference models taken, for ranked attacks.

        ``statistic`` (models, K), ``reference`` (n_ref, K): as in ``Ruling.statistic``; ``beta``, ``pool_sets``: as in
        ``JudgeSettings``. The function maps rows of reference models, repeats allowed, to decisions (models, K).
        """
        raise TypeError(f"attack {cls.name} does not rank among reference models")

    @classmethod
    def promises(cls, selection: str) -> bool:
        """Say whether beta is promised of the candidates of a selection, "all" or the name of a selector."""
        return cls.has_level and (not cls.pooled or selection in UNSELECTED)

    @classmethod
    def attained(cls, beta: float, n_ref: int, pool_sets: float = NO_CORRECTION) -> float | None:
        """Return the level that is truly tested at ``beta`` with ``n_ref`` reference models; None without a rank."""
        return None
