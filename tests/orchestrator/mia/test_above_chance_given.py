"""A given model's row is above chance, starred and called a leak only where its interval says so."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest

from orchestrator.judgement.estimate import Estimate, Span
from orchestrator.mia.result.given import with_intervals
from orchestrator.mia.result.rows import MiaRow
from orchestrator.report.chance import decided, unsure

BLANK: dict[str, Any] = {"Estimate": Estimate(), "Span": Span(), "str": "", "int": 0, "float": 0.0, "bool": False}


def row(**values: Any) -> MiaRow:
    filled = {each.name: BLANK.get(str(each.type)) for each in fields(MiaRow)}
    return MiaRow(**(filled | values))


@pytest.mark.parametrize(
    ("without", "confirmed"), [((), True), ((0.69, 0.70, 0.71, 0.70), True), ((0.5, 0.9, 0.5, 0.9), False)]
)
def test_points_alone_are_no_leak(without: tuple[float, ...], confirmed: bool) -> None:
    draw = np.random.default_rng(0)
    member = np.arange(400) % 2
    own = {"member": member, "score": draw.normal(size=400) + 0.7 * member, "decision_0.1": np.zeros(400)}
    before = row(auc=Estimate(0.7, 0.65, 0.75), auc_p_holm=0.01, above_chance=True, promised_fpr=0.1)
    (found,) = decided([with_intervals(before, own, {"auc": without, "calls": ()}, 0.95, 0)], 0.95)
    assert found.above_chance == found.auc.above(0.5) == confirmed
    assert unsure(found, 0.95) == (not confirmed)
