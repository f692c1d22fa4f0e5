"""Settings of gradient inversion, and the names of its methods."""

from __future__ import annotations

from dataclasses import dataclass

from audits.errors import BadInput

ANALYTIC, DLG, GEIPING = "analytic", "dlg", "geiping"
METHODS = (ANALYTIC, DLG, GEIPING)
"""``analytic`` reads single points off a first fully connected layer; the others search."""


@dataclass(frozen=True)
class GradientInversionSettings:
    """Settings of the search for inputs whose gradient matches.

    ``steps``: evaluations of the cost after the first one, by either search; ``learning_rate`` of ``geiping``'s Adam,
    in units of the inputs; ``tv``: its weight of the total variation; ``starts``: random inputs to start from, of
    which the one that ends at least cost counts.
    """

    steps: int = 300
    learning_rate: float = 0.1
    tv: float = 1e-2
    starts: int = 1

    def __post_init__(self) -> None:
        for field, least in (("steps", 0), ("starts", 1)):
            if getattr(self, field) < least:
                raise BadInput(f"gradient_inversion.{field} is {getattr(self, field)}; it must be {least} or more")
        if not 0 <= self.tv < float("inf"):
            raise BadInput(f"gradient_inversion.tv is {self.tv}; it must be 0 or more and finite")
        if not 0 < self.learning_rate < float("inf"):
            raise BadInput(f"gradient_inversion.learning_rate is {self.learning_rate}; it must be above 0 and finite")
