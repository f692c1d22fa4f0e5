"""The one rule of what lies above chance, of a p-value and an interval."""

from __future__ import annotations

import math

from audits.statistics.chance import ABOVE, BELOW, NULL, UNSURE, standing
from tests.cases.families import as_one


@as_one(
    "auc, low, p, expected",
    [
        (0.6, 0.51, 0.05, ABOVE),
        (0.6, 0.5, 0.001, UNSURE),
        (0.6, None, 0.001, UNSURE),
        (0.6, math.nan, 0.001, UNSURE),
        (0.6, 0.55, 0.0501, NULL),
        (0.6, 0.55, math.nan, NULL),
        (0.6, 0.55, None, NULL),
        (None, None, 0.001, NULL),
        (0.4, 0.3, 0.001, BELOW),
        (0.5, 0.49, 0.001, BELOW),
        (0.4, 0.3, 1.0, NULL),
    ],
)
def test_above_chance_takes_a_corrected_p_value_and_an_interval(
    auc: float | None, low: float | None, p: float | None, expected: str
) -> None:
    assert standing(auc, low, p, 0.95) == expected
