"""Settings of model inversion."""

from __future__ import annotations

from dataclasses import dataclass

from audits.errors import BadInput


@dataclass(frozen=True)
class InversionSettings:
    """Settings of the search for images.

    ``steps`` of Adam at ``learning_rate`` (in units of the inputs); ``tv``: weight of the total variation; ``starts``:
    the mean image, and further ones with gaussian noise of standard deviation ``spread`` (units of the inputs) on it.
    """

    steps: int = 300
    learning_rate: float = 0.02
    tv: float = 0.1
    starts: int = 4
    spread: float = 0.1

    def __post_init__(self) -> None:
        for field, least in (("steps", 0), ("starts", 1)):
            if getattr(self, field) < least:
                raise BadInput(f"inversion.{field} is {getattr(self, field)}; it must be {least} or more")
        for field in ("tv", "spread"):
            if not 0 <= getattr(self, field) < float("inf"):
                raise BadInput(f"inversion.{field} is {getattr(self, field)}; it must be 0 or more and finite")
        if not 0 < self.learning_rate < float("inf"):
            raise BadInput(f"inversion.learning_rate is {self.learning_rate}; it must be above 0 and finite")
