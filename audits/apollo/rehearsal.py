"""Rehearsal of an attack: what it would find of shadows that play the target, without any target being asked.

That is the score by which settings of an attack are chosen. It differs from the score on targets in more than the
choice: a player is judged along one walk instead of two, and with two shadows fewer (four with retained candidates).
So differences between settings are what it is worth looking at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits.apollo.attacks.base import Attack
from audits.apollo.evidence.parts import Evidence
from audits.apollo.evidence.played import played, players
from audits.arrays import Floats, Ids
from audits.statistics.roc import auc


@dataclass(frozen=True)
class Rehearsal:
    """``half`` and ``shadow`` (P,) of each player, ``auc`` (P,) of the points that it unlearned against never seen."""

    half: Ids
    shadow: Ids
    auc: Floats


def rehearsed(attack: Attack, found: Evidence, *, retained: bool = False) -> Rehearsal:
    """Return the AUC that ``attack`` gets of every shadow that can play the target.

    ``retained``: candidates that were trained on and kept are among them; the AUC leaves them out. Raises ``BadInput``
    for attacks on whose evidence no shadow can play, and where there are too few.
    """
    cast = players(found, attack.reads, retained=retained)
    areas = []
    for player in cast:
        own = played(found, attack.reads, player, retained=retained)
        score, inside, outside = attack.judge(own).score, own.truth, own.unseen
        assert inside is not None and outside is not None, "a player's truth is known"
        asked = inside | outside
        areas.append(auc(score[asked], inside[asked]))
    half, shadow = np.array(cast, dtype=np.int64).T
    return Rehearsal(half, shadow, np.array(areas))
