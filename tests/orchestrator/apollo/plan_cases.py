"""A tiny split for plans, and the one line with which a plan is refused."""

from __future__ import annotations

import pytest

from audits.errors import BadInput
from orchestrator.kinds import load_plan

TINY = (
    "split={targets: 2, train_size: 30, target_pool: 60, shadow_pool: 120, test_pool: 100, forget: 0.5, "
    "candidates: {forget: 15, unseen: 15}, shadows: 4, offline_shadows: 2}",
    "audit.fpr=[0.4]",
)


def refusal(*overrides: str, plan: str = "apollo-fashion14") -> str:
    with pytest.raises(BadInput) as caught:
        load_plan(plan, overrides)
    text = str(caught.value)
    assert "\n" not in text
    return text
