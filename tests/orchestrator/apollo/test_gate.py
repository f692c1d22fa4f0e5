"""The release gate: which metrics it takes, which rows count, and that what was not measured never passes."""

from __future__ import annotations

import math
from typing import Any

import pytest

from audits.errors import BadInput
from orchestrator.apollo.headline import HEADLINE
from orchestrator.engine.gate import failures, gates_of, parse_gate
from orchestrator.kinds import load_plan

PLAN = load_plan()


def row(unlearner: str, attack: str, access: str = "labels", **values: float) -> dict[str, Any]:
    return {"unlearner": unlearner, "attack": attack, "access": access, "auc": 0.5, "tpr": 0.05, **values}


ROWS = [
    row("identity", "apollo", auc=0.9),
    row("scrub", "apollo", auc=0.6, tpr=0.2),
    row("scrub", "lira", "posteriors", auc=0.8),
    row("finetune", "apollo", auc=0.65, tpr=math.nan),
    row("retrain", "apollo", auc=0.5),
]


def failed(*texts: str) -> list[str]:
    """Return why the rows do not pass the gates."""
    return failures([parse_gate(text, HEADLINE) for text in texts], HEADLINE, PLAN, {"table": ROWS})


def test_a_bare_metric_is_the_worst_label_only_attack_on_an_approximate_unlearner() -> None:
    assert failed("auc=0.65") == []
    assert failed("auc=0.64") == ["gate auc=0.64: auc is 0.650 (finetune, apollo), above 0.64"]


def test_a_named_row_may_be_any_row() -> None:
    assert len(failed("scrub.lira.auc=0.7", "identity.apollo.auc=0.95")) == 1


def test_what_was_not_measured_does_not_pass() -> None:
    assert "not measured" in failed("tpr=0.99")[0]
    assert "no line of the result" in failed("scrub.single_query.auc=0.99")[0]


@pytest.mark.parametrize(
    "text", ["auc", "auc=", "auc=high", "auc=1", "auc=-0.1", "auc=nan", "acu=0.5", "a.b=0.5", "=1"]
)
def test_gates_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--fail-above"):
        parse_gate(text, HEADLINE)


@pytest.mark.parametrize("text", ["scrubb.apollo.auc=0.5", "scrub.apolo.auc=0.5"])
def test_gates_on_rows_that_the_plan_does_not_make_are_refused_before_any_work(text: str) -> None:
    with pytest.raises(BadInput, match="did you mean"):
        gates_of([text], HEADLINE, PLAN)


def test_a_bare_metric_needs_an_approximate_unlearner() -> None:
    with pytest.raises(BadInput, match="only controls"):
        gates_of(["auc=0.5"], HEADLINE, load_plan(None, ["unlearning=[{method: identity}]"]))
