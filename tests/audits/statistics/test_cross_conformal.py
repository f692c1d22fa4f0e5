"""Cross-conformal p-values are the counts of their formula, and never zero."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from audits.statistics.conformal import p_values
from audits.statistics.cross_conformal import cross_p_values

numbers = st.integers(0, 6).map(float)
part = st.tuples(st.lists(numbers, min_size=3, max_size=3), st.lists(numbers, min_size=1, max_size=8))


@given(st.lists(part, min_size=1, max_size=4))
def test_p_is_the_share_of_comparisons_that_are_lost(parts: list[tuple[list[float], list[float]]]) -> None:
    scores, nulls = ([np.array(each) for each in own] for own in zip(*parts, strict=True))
    found = cross_p_values(scores, nulls)
    for point, p in enumerate(found):
        lost = sum(other >= score[point] for score, null in zip(scores, nulls, strict=True) for other in null)
        assert p == (1 + lost) / (1 + sum(map(len, nulls)))


def test_one_part_gives_the_conformal_p_value() -> None:
    scores, null = np.array([0.0, 2.0, 9.0]), np.array([1.0, 2.0, 3.0])
    assert cross_p_values([scores], [null]).tolist() == p_values(scores, null).tolist() == [1.0, 0.75, 0.25]
