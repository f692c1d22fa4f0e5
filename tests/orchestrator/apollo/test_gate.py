"""The release gate: which metrics it takes, which rows count, and that what was not measured never passes."""

from __future__ import annotations

from functools import cache

import pytest

from audits.errors import BadInput
from orchestrator.apollo.headline import HEADLINE
from orchestrator.apollo.result.rows import AttackRow
from orchestrator.engine.plan.base import BasePlan
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.gate import failures, gates_of, parse_gate
from orchestrator.kinds import load_plan
from tests.orchestrator.apollo.judged_rows import result, row

METHODS = ("gradient_ascent", "finetune", "scrub", "retrain", "identity")


@cache
def plan_once() -> BasePlan:
    methods = ", ".join(f"{{method: {name}}}" for name in METHODS)
    return load_plan(None, [f"unlearning=[{methods}]", "audit.attacks=[apollo, lira]"])


NO_TPR = {"tpr": Estimate()}
ROWS = [
    row("identity", "apollo", 0.9),
    row("identity", "lira", 0.95),
    row("gradient_ascent", "apollo", 0.55),
    row("gradient_ascent", "lira", 0.7),
    row("scrub", "apollo", 0.6, tpr=Estimate(0.2, 0.1, 0.3)),
    row("scrub", "lira", 0.8),
    row("finetune", "apollo", 0.65, **NO_TPR),
    row("finetune", "lira", 0.7),
    row("retrain", "apollo"),
    row("retrain", "lira"),
]


def failed(*texts: str, rows: list[AttackRow] = ROWS) -> list[str]:
    """Return why the rows do not pass the gates."""
    document = {**result(rows).document(), "plan": plan_once().resolved()}
    return failures(gates_of(texts, HEADLINE, plan_once()), HEADLINE, plan_once(), document)


def with_row(changed: AttackRow) -> list[AttackRow]:
    """Return the rows, one of them changed."""
    place = changed.unlearner, changed.attack
    return [changed if (each.unlearner, each.attack) == place else each for each in ROWS]


def test_a_bare_metric_is_the_worst_label_only_attack_on_an_approximate_unlearner() -> None:
    assert failed("auc=0.65") == []
    assert failed("auc=0.64") == ["gate auc=0.64: failed: auc is 0.650 (finetune, apollo), above 0.64"]


def test_a_named_row_may_be_any_row() -> None:
    assert len(failed("scrub.lira.auc=0.7", "identity.apollo.auc=0.95")) == 1


def test_a_limit_on_an_access_is_about_what_that_access_reaches() -> None:
    assert failed("labels.auc=0.65") == []
    assert failed("labels.auc=0.64") == ["gate labels.auc=0.64: failed: auc is 0.650 (finetune, apollo), above 0.64"]
    assert failed("posteriors.auc=0.75") == ["gate posteriors.auc=0.75: failed: auc is 0.800 (scrub, lira), above 0.75"]
    strong = with_row(row("scrub", "apollo", 0.85))  # who sees posteriors sees labels, too
    assert failed("posteriors.auc=0.8", rows=strong) == [
        "gate posteriors.auc=0.8: failed: auc is 0.850 (scrub, apollo), above 0.8"
    ]
    with pytest.raises(BadInput, match=r"within an access \(labels, posteriors, logits, oracle\)"):
        parse_gate("label.auc=0.5", HEADLINE)


def test_what_was_not_measured_does_not_pass() -> None:
    assert "not measured" in failed("tpr=0.99")[0]
    lost = [each for each in ROWS if (each.unlearner, each.attack) != ("scrub", "apollo")]
    found = "auc is 0.650 (finetune, apollo)"
    for text, seen in (
        ("scrub.apollo.auc=0.99", ""), ("auc=0.99", found), ("labels.auc=0.99", found),
        ("posteriors.auc=0.99", "auc is 0.800 (scrub, lira)"),
    ):  # fmt: skip
        why = "no result of scrub, apollo; see the warnings"
        assert failed(text, rows=lost) == [f"gate {text}: inconclusive: {'; '.join(filter(None, (why, seen)))}"]
    assert failed("scrub.lira.auc=0.9", rows=lost) == []


def test_beside_a_failed_control_the_gate_is_inconclusive() -> None:
    blind = with_row(row("identity", "apollo", 0.51))
    for text in ("auc=0.99", "labels.auc=0.99", "scrub.apollo.auc=0.99"):
        (line,) = failed(text, rows=blind)
        assert line.startswith(f"gate {text}: inconclusive: control identity: ")
        assert "(AUC .51 [.48, .54], apollo)" in line
        assert line.endswith(f"auc is {'0.600 (scrub' if 'scrub' in text else '0.650 (finetune'}, apollo)")
    assert failed("scrub.lira.auc=0.99", "posteriors.auc=0.99", rows=blind) == []  # lira sees
    (line,) = failed("auc=0.64", rows=blind)  # what is found is found
    assert line.startswith("gate auc=0.64: failed: auc is 0.650 (finetune, apollo), above 0.64; control identity: ")
    spurious = with_row(row("retrain", "lira", 0.7))
    (line,) = failed("auc=0.99", rows=spurious)
    assert line.startswith("gate auc=0.99: inconclusive: control retrain: ") and ", lira)" in line
    (line,) = failed("auc=0.5", rows=spurious)
    assert line.startswith("gate auc=0.5: inconclusive: auc is 0.650 (finetune, apollo), above 0.5; control retrain: ")


@pytest.mark.parametrize(
    "text", ["auc", "auc=", "auc=high", "auc=1", "auc=-0.1", "auc=nan", "acu=0.5", "a.b=0.5", "=1"]
)
def test_gates_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="--fail-above"):
        parse_gate(text, HEADLINE)


@pytest.mark.parametrize("text", ["scrubb.apollo.auc=0.5", "scrub.apolo.auc=0.5"])
def test_gates_on_rows_that_the_plan_does_not_make_are_refused_before_any_work(text: str) -> None:
    with pytest.raises(BadInput, match="did you mean"):
        gates_of([text], HEADLINE, plan_once())


def test_a_bare_metric_needs_an_approximate_unlearner() -> None:
    with pytest.raises(BadInput, match="only controls"):
        gates_of(["auc=0.5"], HEADLINE, load_plan(None, ["unlearning=[{method: identity}]"]))


@pytest.mark.parametrize("control", ["identity", "retrain"])
def test_a_control_without_a_result_holds_no_gate(control: str) -> None:
    (line,) = failed("auc=0.99", rows=[each for each in ROWS if each.unlearner != control])
    assert line.startswith(f"gate auc=0.99: inconclusive: control {control}: not in this run. ")
    assert line.endswith("auc is 0.650 (finetune, apollo)")
