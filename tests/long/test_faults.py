"""A handful of drawn faults; ``python -m tests.long.faults`` strikes a hundred."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.long.fault_kinds import KINDS, draw
from tests.long.faults import strike_all


def test_a_hundred_faults_are_of_every_kind_and_moment_and_drawn_alike_again() -> None:
    faults = [fault for scenario in draw(1, 100) for fault in scenario.faults]
    assert Counter(fault.kind for fault in faults) == {kind: share for kind, (share, _) in KINDS.items()}
    assert {(fault.kind, fault.moment) for fault in faults} == {
        (kind, moment) for kind, (_, moments) in KINDS.items() for moment in moments
    }
    assert draw(1, 100) == draw(1, 100) != draw(2, 100)


@pytest.mark.long
@pytest.mark.cluster
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", ["kill -9", "Ctrl-C", "two drivers"])
def test_nothing_is_damaged_lost_done_twice_or_left_by_a_fault(tmp_path: Path, kind: str) -> None:
    faults, problems = strike_all(seed=1, count=3, only=kind, together=1, keep=tmp_path)
    assert not problems
    assert [fault.line() for fault in faults if fault.problems or fault.left or fault.twice or not fault.equal] == []
