"""Controls and verdict of TMIA from made-up rows: what each decides for findings and for limits."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.judgement.estimate import Estimate, Span
from orchestrator.judgement.gate import Gate
from orchestrator.judgement.gate import judge_gates as gated
from orchestrator.judgement.rows import FAILED, HELD, LEAK, MISSING, NONE_SEEN, UNTOLD
from orchestrator.judgement.wording import warnings
from orchestrator.tmia.headline import HEADLINE
from orchestrator.tmia.result.given import of_given_model, unlike_warnings
from orchestrator.tmia.result.given_rows import AlikeRow, GivenCell, OwnModelCell
from orchestrator.tmia.result.judging import judge
from orchestrator.tmia.result.rows import FitRow, OverfittedRow, TmiaCell, TmiaResult, TmiaSetting

JUDGE, POSTERIORS, OTHER = "tmia_distance", "tmia_posterior", "yeom"
ATTACKS = {JUDGE: "labels", POSTERIORS: "posteriors", OTHER: "posteriors"}
NULL, ABOVE = Estimate(0.5, 0.47, 0.53), Estimate(0.8, 0.77, 0.83)
SEES, BLIND = Estimate(0.9, 0.85, 0.95), Estimate(0.5, 0.45, 0.55)
KEPT, BROKEN = Estimate(0.05, 0.01, 0.1), Estimate(0.4, 0.35, 0.45)


def cell(setting: str, attack: str, form: type[TmiaCell] = TmiaCell, **changes: Any) -> TmiaCell:
    """Return a cell that finds nothing, of an attack that keeps its promise; Yeom's promises none."""
    promised = None if attack == OTHER else 5.0
    fields: dict[str, Any] = {
        "mode": "I", "selection": "kmeans", "access": ATTACKS.get(attack, ""), "beta": 0.05, "attained": 0.05,
        "candidates": 100, "targets": 40, "true_positives": 100, "false_positives": 100, "members": 2000,
        "non_members": 2000, "expected_false_positives": promised, "precision": NULL, "precision_t": Span(),
        "coverage": NULL, "coverage_t": Span(), "fpr": KEPT, "fpr_t": Span(), "auc": BLIND, "null_models": 20,
        "null_candidates": 100, "null_fpr": KEPT, "null_false_positives": 100, "null_pairs": 2000,
        "null_expected": promised, "queries_per_point": 1.0, "failed": 0, **changes,
    }  # fmt: skip
    if form is GivenCell:
        fields["resampled"] = "points and reference models"
    return form(setting=setting, attack=attack, **fields)


def result(
    cells: Sequence[TmiaCell], seen: Mapping[str, Estimate] | None = None, fit: Sequence[FitRow] = ()
) -> TmiaResult:
    """Return a result that is not judged; ``seen``: what attacks see in over-fitted models of each setting."""
    names = list(dict.fromkeys(each.setting for each in cells))
    areas = dict.fromkeys(ATTACKS, SEES) if seen is None else seen
    plan = {
        "audit": {"kind": "tmia", "attacks": [*ATTACKS], "selectors": ["none", "kmeans"], "mode": "I", "star": None},
        "data": {"name": "digits"}, "split": {"candidates": 100, "reference_models": 40, "train_size": 1000},
    }  # fmt: skip
    overfitted = [
        OverfittedRow(setting=name, attack=attack, access="labels", models=4, candidates=100, auc=area)
        for name in names
        for attack, area in areas.items()
    ]
    return TmiaResult(
        name="tmia-audit", kind="tmia", seed=0, plan=plan, versions={}, table=tuple(cells), fit=tuple(fit),
        settings=tuple(TmiaSetting(setting=name, overrides={}, mode="I") for name in names), selections=(),
        reconstruction=(), exposed=(), level=0.95, overfitted=tuple(overfitted),
    )  # fmt: skip


def every(*settings: str, **changes: Mapping[str, Any]) -> list[TmiaCell]:
    """Return a cell for each setting and attack; ``changes``: of the cells of an attack."""
    return [cell(name, attack, **changes.get(attack, {})) for name in settings for attack in ATTACKS]


def levels(found: TmiaResult) -> dict[tuple[str, str | None], str]:
    assert found.verdict is not None
    return {(each.setting, each.attack): each.level for each in found.verdict.findings}


def outcome(found: TmiaResult, limit: float, *place: str, metric: str = "auc") -> str:
    """Return how a result stands to a limit on a line, on the worst of labels without one."""
    gate = Gate(f"{metric}={limit}", metric, limit, place or None)
    (one,) = gated([gate], WHOLE, None, found.document()).limits
    return one.outcome


WHOLE = replace(HEADLINE, lost=lambda plan, document: [])
"""The headline of a result without attacks that failed, which are looked up in a plan."""


def test_beside_controls_that_held_a_null_result_stands() -> None:
    found = judge(result(every("I")))
    assert set(levels(found).values()) == {NONE_SEEN} and {each.state for each in found.controls} == {HELD}
    assert outcome(found, 0.9) == "passed"


def test_a_finding_rests_on_its_own_attack_alone() -> None:
    found = judge(result(every("I"), {JUDGE: BLIND, POSTERIORS: SEES, OTHER: BLIND}))
    assert levels(found) == {("I", JUDGE): UNTOLD, ("I", POSTERIORS): NONE_SEEN}
    assert states(found)["over-fitted models"] == FAILED
    places = [("I", "kmeans", attack) for attack in ATTACKS]
    assert [outcome(found, 0.9, *place) for place in places] == ["inconclusive", "passed", "inconclusive"]
    leak = judge(result(every("I", tmia_distance={"precision": ABOVE}), dict.fromkeys(ATTACKS, BLIND)))
    assert levels(leak) == {("I", JUDGE): LEAK, ("I", POSTERIORS): UNTOLD}


@pytest.mark.parametrize("seed", range(3))
def test_attacks_of_the_verdict_decide_first_in_whatever_order_rows_stand(seed: int) -> None:
    cells = every("I")
    random.Random(seed).shuffle(cells)
    found = judge(result(cells, {OTHER: SEES, POSTERIORS: Estimate(0.6, 0.55, 0.65), JUDGE: BLIND}))
    rows = [(each.attack, each.state) for each in found.controls if each.name == "over-fitted models"]
    assert rows == [(POSTERIORS, HELD), (JUDGE, FAILED), (OTHER, HELD)]


def test_no_other_attack_takes_the_place_of_one_that_failed() -> None:
    cells = [each for each in every("I", "II") if (each.setting, each.attack) != ("I", JUDGE)]
    cells.append(cell("I", "label_gap", access="labels", precision=ABOVE))
    whole = result(cells)
    whole = replace(whole, plan={**whole.plan, "audit": {**whole.plan["audit"], "attacks": [*ATTACKS, "label_gap"]}})
    found = judge(whole)
    assert found.verdict is not None
    assert [(each.setting, each.attack, each.level) for each in found.verdict.findings] == [
        ("I", None, UNTOLD), ("I", POSTERIORS, NONE_SEEN), ("II", JUDGE, NONE_SEEN), ("II", POSTERIORS, NONE_SEEN),
    ]  # fmt: skip
    assert found.verdict.findings[0].why == "TMIA, distance has no result" and found.verdict.level == UNTOLD


def test_an_attack_that_a_mode_leaves_out_has_not_failed() -> None:
    cells = [cell("I", "label_gap", access="labels"), cell("I", POSTERIORS), cell("II", POSTERIORS, mode="II")]
    whole = result(cells, dict.fromkeys(("label_gap", POSTERIORS), SEES))
    audit = {**whole.plan["audit"], "attacks": ["label_gap", POSTERIORS]}
    modes = tuple(TmiaSetting(setting=mode, overrides={"audit.mode": mode}, mode=mode) for mode in ("I", "II"))
    found = judge(replace(whole, plan={**whole.plan, "audit": audit}, settings=modes))
    assert levels(found) == dict.fromkeys([("I", "label_gap"), ("I", POSTERIORS), ("II", POSTERIORS)], NONE_SEEN)


def test_without_over_fitted_models_no_null_result_stands() -> None:
    found = judge(result(every("I"), {}))
    assert set(levels(found).values()) == {UNTOLD} and outcome(found, 0.9) == "inconclusive"
    assert [each.attack for each in found.controls if each.state == MISSING] == [*ATTACKS]


def test_a_broken_promise_takes_null_results_of_its_setting_alone() -> None:
    cells = every("I", "II")
    cells[1] = cell("I", POSTERIORS, null_fpr=BROKEN)
    cells[0] = cell("I", JUDGE, precision=ABOVE)
    found = judge(result(cells))
    assert levels(found) == {
        ("I", JUDGE): LEAK, ("I", POSTERIORS): UNTOLD, ("II", JUDGE): NONE_SEEN, ("II", POSTERIORS): NONE_SEEN,
    }  # fmt: skip
    cells[0] = cell("I", JUDGE)
    found = judge(result(cells))
    assert levels(found)["I", JUDGE] == UNTOLD
    places = [(setting, "kmeans", JUDGE) for setting in ("I", "II")]
    assert [outcome(found, 0.9, *place) for place in places] == ["inconclusive", "passed"]
    assert outcome(found, 0.4, *places[0]) == "failed"
    (line,) = warnings(found.controls)
    assert "setting I)" in line and "TMIA, posteriors (40.0" in line


def test_null_models_that_are_missing_void_nothing() -> None:
    found = judge(result(every("I", **{name: {"null_models": 0} for name in (JUDGE, POSTERIORS)})))
    assert {each.name: each.state for each in found.controls}["null models"] == MISSING
    assert set(levels(found).values()) == {NONE_SEEN} and outcome(found, 0.9) == "passed"


def of_given(
    area: Estimate = SEES,
    seen: Mapping[str, Estimate] | None = None,
    own_train: float = 0.9,
    differ: bool = False,
    **changes: Any,
) -> TmiaResult:
    """Return the judged result of a given model; ``area``: what attacks see there, ``seen``: in own models."""
    cells = [cell("I", attack, GivenCell, **{"auc": area, **changes}) for attack in ATTACKS]
    fit = [
        FitRow(setting="I", side="asked", group=group, models=1, train_accuracy=train, test_accuracy=0.7, gap=0.2,
               flag="overfitted")
        for group, train in (("target", 0.9), ("control", own_train))
    ]  # fmt: skip
    own = [
        OwnModelCell(
            setting="I", control=0, selection="kmeans", attack=attack, access=ATTACKS[attack], candidates=100,
            true_positives=1, false_positives=1, members=50, non_members=50, precision=NULL, coverage=NULL, fpr=KEPT,
            auc=auc, failed=0, resampled="points",
        )
        for attack, auc in (dict.fromkeys(ATTACKS, SEES) if seen is None else seen).items()
    ]  # fmt: skip
    alike = AlikeRow(setting="I", auc=ABOVE if differ else BLIND, differ=differ)
    return judge(of_given_model(result(cells, {}, fit), tuple(own), (alike,), ()))


def states(found: TmiaResult) -> dict[str, str]:
    assert found.verdict is not None
    return {each.name: each.state for each in found.verdict.controls}


def test_controls_of_a_given_model_hold_its_null_results() -> None:
    found = of_given()
    assert set(states(found).values()) == {HELD} and len(states(found)) == 6
    assert set(levels(found).values()) == {NONE_SEEN} and outcome(found, 0.95) == "passed"


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("known non-members of the target", {"fpr": BROKEN, "precision": ABOVE}),
        ("own models", {"seen": dict.fromkeys(ATTACKS, BLIND)}),
        ("fit of own models", {"own_train": 0.75}),
        ("agreement with own models", {"area": BLIND}),
        ("members are like non-members", {"differ": True, "precision": ABOVE}),
    ],
)
def test_a_control_of_a_given_model_that_failed_takes_what_it_protects(name: str, changes: dict[str, Any]) -> None:
    found = of_given(**changes)
    also = {"own models": ["agreement with own models"]}.get(name, [])  # in which less is seen than in the given one
    assert [each for each, state in states(found).items() if state == FAILED] == [name, *also]
    assert set(levels(found).values()) == {UNTOLD} and outcome(found, 0.95) == "inconclusive"
    taken = name in ("members are like non-members", "agreement with own models") or also
    assert outcome(found, 0.1) == ("inconclusive" if taken else "failed")


def test_own_models_are_asked_attack_by_attack() -> None:
    found = of_given(seen={JUDGE: BLIND, POSTERIORS: SEES})
    assert levels(found) == {("I", JUDGE): UNTOLD, ("I", POSTERIORS): NONE_SEEN}
    rows = [(each.attack, each.state) for each in found.controls if each.name == "own models"]
    assert rows == [(POSTERIORS, HELD), (JUDGE, FAILED), (OTHER, MISSING)]


def test_known_non_members_of_whom_no_rate_is_promised_are_missing() -> None:
    assert states(of_given(expected_false_positives=None))["known non-members of the target"] == MISSING


@pytest.mark.parametrize(("train", "state", "warned"), [(0.88, HELD, 0), (0.82, HELD, 1), (0.75, FAILED, 1)])
def test_models_that_fit_a_little_otherwise_are_warned_of_and_count(train: float, state: str, warned: int) -> None:
    found = of_given(own_train=train)
    assert states(found)["fit of own models"] == state and len(unlike_warnings(found)) == warned
    assert all(line in found.warnings for line in unlike_warnings(found))
