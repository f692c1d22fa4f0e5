"""No selection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from audits.tmia.selectors.base import SELECTORS, Case, Scores, Selector


@SELECTORS.register("none")
@dataclass(frozen=True)
class Everyone(Selector):
    """No selection: every candidate is chosen by every rule."""

    def select(self, case: Case) -> Scores:
        """Return +∞ for candidates, 0 for one reference sample."""
        return Scores(np.full(case.candidates, np.inf), np.zeros(1))
