"""Numbers with their intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Estimate:
    """A number and its interval; None where the number or an end is not defined.

    In JSON the field ``auc`` of a row stands as ``auc``, ``auc_low`` and ``auc_high``, unless ``keys`` says otherwise.
    """

    SUFFIXES: ClassVar[tuple[str, ...]] = ("", "_low", "_high")

    value: float | None = None
    low: float | None = None
    high: float | None = None

    def __float__(self) -> float:
        return math.nan if self.value is None else float(self.value)

    @property
    def known(self) -> bool:
        """Whether there is a number."""
        return self.value is not None

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends, NaN for those that are not defined."""
        return math.nan if self.low is None else self.low, math.nan if self.high is None else self.high

    @property
    def bounded(self) -> bool:
        """Whether there is an interval."""
        return self.low is not None and self.high is not None

    @property
    def errors(self) -> tuple[float, float]:
        """How far the interval reaches below and above the number, for error bars; 0 without an interval."""
        value, (low, high) = float(self), self.ends
        return max(0.0, value - low) if low == low else 0.0, max(0.0, high - value) if high == high else 0.0

    def above(self, limit: float) -> bool:
        """Say whether the whole interval lies above ``limit``."""
        return self.low is not None and self.low > limit

    def below(self, limit: float) -> bool:
        """Say whether the whole interval lies below ``limit``."""
        return self.high is not None and self.high < limit

    def holds(self, value: float) -> bool:
        """Say whether ``value`` lies in the interval."""
        return self.low is not None and self.high is not None and self.low <= value <= self.high

    @property
    def side(self) -> int:
        """The side of zero on which the whole interval lies: +1, −1, or 0 for neither."""
        return 0 if not self.bounded else 1 if self.above(0.0) else -1 if self.below(0.0) else 0


@dataclass(frozen=True)
class Span:
    """An interval without a number of its own: the field ``tpr_exact`` stands as ``tpr_exact_low`` and …``_high``."""

    SUFFIXES: ClassVar[tuple[str, ...]] = ("_low", "_high")

    low: float | None = None
    high: float | None = None


def keys(*names: str) -> Mapping[str, Any]:
    """Return the metadata of an ``Estimate`` or a ``Span`` whose numbers stand under other ``names`` in JSON."""
    return {"keys": names}
