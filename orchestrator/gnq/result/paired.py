"""The part of a row that every paired difference of a GNQ result has."""

from __future__ import annotations

from dataclasses import dataclass, field

from orchestrator.judgement.estimate import Estimate, keys


@dataclass(frozen=True, kw_only=True)
class PairedRow:
    """A difference paired by pool, with its p-value before and after Holm's correction; None of a single pool."""

    difference: Estimate = field(metadata=keys("difference", "low", "high"))
    p: float | None
    p_holm: float | None = None

    def clear(self, level: float) -> int:
        """Return the side of zero on which the difference lies, also after Holm's correction; 0 for neither."""
        return self.difference.side if self.p_holm is None or self.p_holm <= 1.0 - level else 0
