"""The control and the verdict of GNQ from made-up rows: what it decides for findings and for limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.gnq.headline import HEADLINE
from orchestrator.gnq.result.gradient_rows import GradientInversionGainRow
from orchestrator.gnq.result.judging import OTHER, RECOVERED, judge
from orchestrator.gnq.result.rows import AreaRow, ArmRow, GnqResult
from orchestrator.gnq.result.rows import Headline as OfArm
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.gate import Gate
from orchestrator.judgement.gate import judge_gates as gated
from orchestrator.judgement.rows import FAILED, HELD, LEAK, MISSING, NONE_SEEN, UNTOLD
from orchestrator.judgement.wording import warnings
from orchestrator.report.result import SettingRow

CHANCE, NULL, ABOVE = Estimate(0.5, 0.45, 0.55), Estimate(0.51, 0.46, 0.56), Estimate(0.8, 0.75, 0.85)
OFF, FURTHER = Estimate(0.7, 0.65, 0.75), Estimate(0.2, 0.15, 0.25)
ARMS = {"none": None, "dp-8": None, "random-0.2": "random"}
"""Arm → ranking of its points."""
METHODS = {"none": "none", "dp-8": "dp_sgd", "random-0.2": "remove"}


def area(setting: str, arm: str, attack: str, moment: str, auc: Estimate) -> AreaRow:
    return AreaRow(
        setting=setting, arm=arm, group="contributors", attack=attack, shadows="naive", moment=moment, auc=auc,
        access="posteriors", pools=4, targets=8, two_sided=Estimate(),
    )  # fmt: skip


def arm_row(setting: str, arm: str, auc: Estimate | None) -> ArmRow:
    """Return an arm whose strongest attack has an AUC; None of one that diverged."""
    return ArmRow(
        setting=setting, arm=arm, method=METHODS[arm], ranking=ARMS[arm], share=None, strength=None, epsilon=None,
        delta=None, trained_on=1000, steps=40, last_batch=12, train_accuracy=0.9, test_accuracy=CHANCE, onion=None,
        diverged=auc is None, headline=None if auc is None else OfArm(attack="lira", auc=auc),
    )  # fmt: skip


def result(
    null: Mapping[str, Sequence[Estimate]], auc: Mapping[str, Estimate | None] | None = None, **fields: Any
) -> GnqResult:
    """Return a result that is judged.

    ``null``: setting → AUCs on null models, of LiRA and of the loss; ``auc``: arm → what its strongest attack finds,
    nothing if it is not there.
    """
    found = dict.fromkeys(ARMS, NULL) | dict(auc or {})
    plan = {
        "audit": {"kind": "gnq", "attacks": ["lira", "loss"]}, "data": {"name": "digits"}, "model": {"name": "mlp"},
        "split": {"pools": 4, "train_size": 1000, "shadows": 8},
    }  # fmt: skip
    table = [
        *(area(name, arm, "lira", "after", each) for name in null for arm, each in found.items() if each),
        *(
            area(name, "none", attack, "null", each)
            for name, areas in null.items()
            for attack, each in zip(("lira", "loss"), areas, strict=False)
        ),
    ]
    return judge(
        GnqResult(
            name="gnq-audit", kind="gnq", seed=0, plan=plan, versions={}, level=0.95,
            settings=tuple(SettingRow(setting=name, overrides={}) for name in null),
            arms=tuple(arm_row(name, arm, each) for name in null for arm, each in found.items()),
            table=tuple(table), comparisons=(), correlations=(), gains=(), bins=(), points=(), traces=(), **fields,
        )
    )  # fmt: skip


def levels(found: GnqResult) -> dict[str, str]:
    assert found.verdict is not None
    return {each.controlled_by or each.subject: each.level for each in found.verdict.findings}


def outcome(found: GnqResult, limit: float, *place: str) -> str:
    """Return how a result stands to a limit on the AUC of an arm, of no defence without one."""
    headline = replace(HEADLINE, lost=lambda plan, document: [])  # attacks that failed are looked up in a plan
    (one,) = gated([Gate(f"auc={limit}", "auc", limit, place or None)], headline, None, found.document()).limits
    return one.outcome


HOLDS, ALARMS = {"base": [CHANCE, CHANCE]}, {"base": [CHANCE, OFF]}
WITHOUT: dict[str, list[Estimate]] = {"base": []}


@pytest.mark.parametrize(
    ("null", "state", "leak", "nothing", "above", "below"),
    [
        (HOLDS, HELD, LEAK, NONE_SEEN, "failed", "passed"),
        (ALARMS, FAILED, UNTOLD, UNTOLD, "inconclusive", "inconclusive"),
        (WITHOUT, MISSING, LEAK, UNTOLD, "failed", "inconclusive"),
        ({"base": [Estimate(0.5)]}, MISSING, LEAK, UNTOLD, "failed", "inconclusive"),  # of a single pool
    ],
)
def test_findings_and_limits_stand_or_fall_with_null_models(
    null: dict[str, list[Estimate]], state: str, leak: str, nothing: str, above: str, below: str
) -> None:
    found = result(null, {"none": ABOVE})
    assert [(each.name, each.state) for each in found.controls] == [("null models", state)]
    assert levels(found) == {"none": leak, "dp-8": nothing}
    assert (outcome(found, 0.6), outcome(found, 0.6, "dp-8")) == (above, below)


def test_null_models_that_are_off_are_shown_by_the_cell_that_is_furthest_off() -> None:
    for areas in ([OFF, FURTHER], [FURTHER, OFF]):
        found = result({"base": areas})
        (control,) = found.controls
        assert control.evidence == FURTHER and control.attack == ("loss" if areas[1] == FURTHER else "lira")
        assert "in 2 of 2 fair comparisons, most clearly under no defence" in control.why
        (warning,) = warnings(found.controls)
        assert warning.startswith("control failed: null models: ")
        assert f"(AUC .20 [.15, .25], {control.attack})" in warning


def test_null_models_of_one_setting_say_nothing_of_another() -> None:
    found = result({"base": [CHANCE, CHANCE], "late": [CHANCE, OFF]})
    assert [(each.setting, each.state) for each in found.controls] == [("base", HELD), ("late", FAILED)]
    assert found.verdict is not None
    by_setting = {each.setting: each.level for each in found.verdict.findings if each.controlled_by == "none"}
    assert by_setting == {"base": NONE_SEEN, "late": UNTOLD}
    assert outcome(found, 0.6) == "inconclusive"  # a limit looks at both
    (control,) = found.verdict.controls
    assert control.state == HELD and control.why.endswith("Failed in 1 other setting: late.")


def test_an_arm_that_diverged_cannot_be_told_and_one_at_random_is_no_finding() -> None:
    found = result(HOLDS, {"dp-8": None, "random-0.2": ABOVE})
    assert levels(found) == {"none": NONE_SEEN, "dp-8": UNTOLD}
    assert outcome(found, 0.6) == "passed" and outcome(found, 0.6, "dp-8") == "inconclusive"


def test_what_is_reconstructed_rests_on_null_models_as_well() -> None:
    gain = GradientInversionGainRow(
        setting="base", step=4, batch=1, method="dlg", against=OTHER, measure=RECOVERED,
        difference=Estimate(0.3, 0.2, 0.4), p=0.001, p_holm=0.001,
    )  # fmt: skip
    subject = "Gradients of a training step"
    for null, level in ((HOLDS, LEAK), (WITHOUT, LEAK), (ALARMS, UNTOLD)):
        assert levels(result(null, gradient_inversion_gains=(gain,)))[subject] == level


def test_a_result_that_is_read_again_is_judged_alike() -> None:
    found = result(ALARMS, {"none": ABOVE})
    assert judge(found) == found
