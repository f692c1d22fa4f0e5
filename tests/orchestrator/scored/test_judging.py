"""Controls of judged scores: each attack has its own, and neither verdict nor gate lets them reach another attack."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.gate import gates_of, judge_gates
from orchestrator.report.result import SettingRow
from orchestrator.scored.headline import HEADLINE
from orchestrator.scored.judging import judge
from orchestrator.scored.rows import ScoreResult, ScoreRow

NAMES = ["sound", "other"]


def row(attack: str, auc: float, **more: Any) -> ScoreRow:
    """Return a row of an attack on many points, of whose AUC the interval is narrow."""
    fields: dict[str, Any] = {
        "auc": Estimate(auc, auc - 0.02, auc + 0.02), "auc_pooled": auc, "auc_p": 1.0, "auc_p_holm": 1.0,
        "above_chance": False, "promised_fpr": 0.1, "thresholds": "given", "tpr": Estimate(0.1, 0.05, 0.15),
        "found_fpr": Estimate(0.1, 0.05, 0.15), "other_targets_tpr": None, "roc_tpr": 0.1, "targets": 8,
        "members": 8000, "non_members": 8000, "found_fpr_p": 0.5, **more,
    }  # fmt: skip
    return ScoreRow(setting="base", attack=attack, **fields)


def result(*rows: ScoreRow) -> ScoreResult:
    """Return the judged result of rows."""
    return judge(
        ScoreResult(
            name="scores", kind="score", seed=0, settings=(SettingRow(setting="base", overrides={}),), plan={},
            versions={}, table=rows, decisions=(), predictive_values=(), epsilons=(), no_epsilon="", covers="",
            layout="ours", level=0.95, command="",
        )
    )  # fmt: skip


def outcomes(found: ScoreResult, *limits: str) -> list[str]:
    """Return how a result stands to limits."""
    gate = judge_gates(gates_of(limits, HEADLINE, NAMES), HEADLINE, NAMES, found.document())
    return [limit.outcome for limit in gate.limits]


def levels(found: ScoreResult) -> dict[str, str]:
    """Return attack → what the verdict says of it."""
    assert found.verdict is not None
    return {each.subject: each.level for each in found.verdict.findings}


def test_without_a_failure_null_results_stand_and_limits_pass() -> None:
    found = result(row("sound", 0.5), row("other", 0.51))
    assert {*levels(found).values()} == {"no leak seen"} and len(found.controls) == 4
    assert found.verdict is not None
    assert [(each.name, each.state) for each in found.verdict.controls] == [
        ("direction of scores", "held"), ("promised false-alarm rates", "held"),
    ]  # fmt: skip
    assert outcomes(found, "auc=0.6", "sound.auc=0.6", "other.auc=0.6") == ["passed"] * 3


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"auc": 0.4, "auc_p": 0.001, "auc_p_holm": 0.001}, "direction of scores"),
        ({"auc": 0.5, "found_fpr_p": 1e-6, "found_fpr": Estimate(0.3, 0.25, 0.35)}, "promised false-alarm rates"),
    ],
)
def test_a_control_of_one_attack_takes_back_its_own_null_result_alone(changes: dict[str, Any], name: str) -> None:
    found = result(row("sound", 0.5), row("other", **changes))
    assert levels(found) == {"sound": "no leak seen", "other": "cannot be told"}
    assert found.verdict is not None and found.verdict.level == "cannot be told"
    assert [each.name for each in found.verdict.controls if each.state == "failed"] == [name]
    assert outcomes(found, "auc=0.6", "sound.auc=0.6", "other.auc=0.6") == ["inconclusive", "passed", "inconclusive"]
    leak = result(row("sound", 0.7, auc_p=0.001, auc_p_holm=0.001), row("other", **changes))
    assert levels(leak)["sound"] == "leak" and outcomes(leak, "auc=0.6", "sound.auc=0.6") == ["failed", "failed"]


def test_without_decisions_of_its_own_an_attack_promises_nothing() -> None:
    found = result(row("sound", 0.5, found_fpr_p=None))
    assert [each.name for each in found.controls] == ["direction of scores"]
