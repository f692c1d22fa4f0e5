"""Results of made-up rows, judged as those of runs are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from orchestrator.apollo.headline import HEADLINE
from orchestrator.apollo.result.judging import judge
from orchestrator.apollo.result.rows import ApolloResult, AttackRow, UtilityRow
from orchestrator.judgement.estimate import Estimate, Span
from orchestrator.judgement.gate import gates_of
from orchestrator.judgement.gate import judge_gates as held_to
from orchestrator.judgement.gate_result import LimitResult
from orchestrator.judgement.rows import Verdict
from orchestrator.kinds import plan_from
from orchestrator.report.result import SettingRow

ACCESS = {"lira": "posteriors", "rmia": "posteriors", "u_mia_oracle": "oracle"}
"""Attacks that see more than labels."""


def row(unlearner: str, attack: str, auc: float = 0.5, **more: object) -> AttackRow:
    """Return a row that keeps its promise: an interval of ±.03, and the p-value that goes with it."""
    p = 0.0001 if abs(auc - 0.5) > 0.03 else 0.9
    fields: dict[str, Any] = {
        "setting": "base", "unlearner": unlearner, "attack": attack, "access": ACCESS.get(attack, "labels"),
        "auc": Estimate(auc, auc - 0.03, auc + 0.03), "auc_bootstrap": Span(), "auc_pooled": auc, "auc_p": p,
        "auc_p_holm": p, "above_chance": False, "promised_fpr": 0.05, "tpr": Estimate(0.05, 0.02, 0.09),
        "tpr_exact": Span(), "found_fpr": Estimate(0.05, 0.02, 0.09), "found_fpr_exact": Span(), "roc_tpr": None,
        "queries_per_point": 1.0, "targets": 8, "forget": 4000, "unseen": 4000, "found_fpr_p": 0.4,
        "found_fpr_below_p": 0.6, **more,
    }  # fmt: skip
    return AttackRow(**fields)


BROKEN: Mapping[str, Any] = {"found_fpr": Estimate(0.3, 0.25, 0.35), "found_fpr_p": 1e-6}
"""Fields of a row that breaks its promise."""


def result(
    rows: Sequence[AttackRow], utility: Sequence[UtilityRow] = (), settings: Sequence[str] = (), **plan: Any
) -> ApolloResult:
    """Return the judged result of rows, of a ``plan`` with their methods and attacks."""
    methods, attacks = (list(dict.fromkeys(getattr(each, name) for each in rows)) for name in ("unlearner", "attack"))
    raw = {
        "audit": {"kind": "apollo", "attacks": attacks, "level": 0.95}, "data": {"name": "fashion14"},
        "model": {"name": "mlp"}, "split": {"train_size": 1000, "shadows": 16},
        "unlearning": [{"method": name} for name in methods], **plan,
    }  # fmt: skip
    return judge(
        ApolloResult(
            name="apollo-audit", kind="apollo", seed=0, plan=raw, versions={}, table=tuple(rows), holm={},
            utility=tuple(utility), expected_misses=0.0,
            settings=tuple(SettingRow(setting=name, overrides={}) for name in settings or ["base"]),
        )
    )  # fmt: skip


def verdict_of(found: ApolloResult) -> Verdict:
    """Return the verdict of a judged result."""
    assert found.verdict is not None
    return found.verdict


def levels(found: ApolloResult) -> dict[str, str]:
    """Return method → what the verdict says of it in the main setting."""
    return {each.controlled_by: each.level for each in verdict_of(found).findings if each.setting == found.main_setting}


def states(found: ApolloResult) -> dict[str, str]:
    """Return control → how it came out, as the verdict has it."""
    return {each.name: each.state for each in verdict_of(found).controls}


def limits(found: ApolloResult, *texts: str) -> list[LimitResult]:
    """Return how a result stands to limits."""
    plan = plan_from({**found.plan, "split": {"train_size": 1000}})
    return list(held_to(gates_of(texts, HEADLINE, plan), HEADLINE, plan, found.document()).limits)


def outcomes(found: ApolloResult, *texts: str) -> list[str]:
    """Return the outcomes of limits."""
    return [limit.outcome for limit in limits(found, *texts)]
