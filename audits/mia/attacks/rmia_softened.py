"""RMIA online by softened posteriors (Zarifzadeh et al. 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from audits.mia.answers import SOFT
from audits.mia.attacks.base import MIA_ATTACKS
from audits.mia.attacks.rmia import RMIA


@MIA_ATTACKS.register("rmia_softened")
@dataclass(frozen=True)
class RMIASoftened(RMIA):
    """RMIA online (arXiv 2312.03262) by a softmax of temperature 2, as in the paper's experiments.

    Score: as ``rmia``, with probabilities of the logits divided by 2.

    Deviations: no Taylor expansion in the softmax, no augmented queries.

    Not for: decisions at a promised rate: it ranks a little better than ``rmia``, and recognises fewer members there,
    as the answers of models of other pools differ more.
    """

    temperature: ClassVar[float] = SOFT
