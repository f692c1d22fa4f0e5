"""Broken promises: which rows are void, where that is said, and that nothing void passes a gate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.apollo.headline import HEADLINE
from orchestrator.apollo.page.page import PAGE
from orchestrator.apollo.result.controls import judged_rows
from orchestrator.apollo.result.rows import AttackRow
from orchestrator.apollo.result.void import void_cells
from orchestrator.judgement.estimate import Estimate, Span
from orchestrator.judgement.gate import failures, gates_of
from orchestrator.kinds import load_plan
from tests.cases.runs import audited

ABOVE, BELOW, KEPT = 1e-6, 1e-6, 0.4


def row(unlearner: str = "scrub", attack: str = "apollo", rate: float = 0.05, **values: object) -> AttackRow:
    """Return a row that keeps its promise unless ``values`` say otherwise."""
    none = Estimate(0.5, 0.4, 0.6)
    given = {
        "setting": "base", "unlearner": unlearner, "attack": attack, "access": "labels", "auc": none,
        "auc_bootstrap": Span(), "auc_pooled": 0.5, "auc_p": 0.5, "auc_p_holm": 1.0, "above_chance": False,
        "promised_fpr": rate, "tpr": none, "tpr_exact": Span(), "found_fpr": Estimate(0.05, 0.02, 0.09),
        "found_fpr_exact": Span(), "roc_tpr": None, "queries_per_point": 1.0, "targets": 8, "forget": 400,
        "unseen": 400, "found_fpr_p": KEPT, "found_fpr_below_p": 1.0 - KEPT,
    }  # fmt: skip
    return AttackRow(**{**given, **values})  # type: ignore[arg-type]  # fields by name


def void(*rows: AttackRow) -> list[bool]:
    """Return which of the rows are void once they are judged at level .95."""
    return [each.void for each in judged_rows(rows, 0.95)]


def test_a_rate_above_the_promise_voids_and_one_below_does_not() -> None:
    above, below = row(found_fpr_p=ABOVE), row("finetune", found_fpr_p=1.0, found_fpr_below_p=BELOW)
    found = judged_rows([above, below, row("salun")], 0.95)
    assert [(each.void, each.found_fpr_off, each.found_fpr_below) for each in found] == [
        (True, True, False),
        (False, False, True),
        (False, False, False),
    ]


def test_only_what_is_left_after_the_correction_voids() -> None:
    many = [row("scrub", f"attack {place}") for place in range(40)]
    assert void(row(found_fpr_p=0.01)) == [True]
    assert void(row(found_fpr_p=0.01), *many) == [False] * 41
    assert void(row(found_fpr_p=0.001), *many) == [True] + [False] * 40


def test_a_cell_is_void_at_all_its_rates_and_an_attack_off_on_retraining_against_all_methods() -> None:
    rows = [row(found_fpr_p=ABOVE), row(rate=0.1), row(attack="lira"), row("finetune")]
    assert void(*rows) == [True, True, False, False]
    control = [row("retrain", found_fpr_p=ABOVE), row(), row("finetune"), row(attack="lira")]
    assert void(*control) == [True, True, True, False]
    elsewhere = replace(control[1], setting="beta=8")
    assert void(control[0], elsewhere) == [True, False]
    assert void(row(found_fpr_p=ABOVE, access="oracle")) == [False], "an oracle promises nothing"
    assert void_cells([]) == frozenset()


@pytest.mark.long
def test_shadows_trained_for_fewer_epochs_void_the_loss_threshold(tmp_path) -> None:
    """Targets fit their points and their like; shadows of one epoch think that any low loss is a trained one.

    In short: the tests of rows and of warnings by themselves, here.
    """
    plan = load_plan(
        "apollo-smoke",
        [
            "split.targets=8", "split.targets_per_shadow_set=4", "split.train_size=60", "split.target_pool=120",
            "split.forget=0.5", "split.candidates={forget: 5, unseen: 7}", "split.shadows=4",
            "audit.attacks=[loss_threshold]", "recipe.epochs=40", "compute.workers=0",
            "shadow_recipe={learning_rate: 0.002, batch_size: 32, epochs: 1}", f"compute.store={tmp_path / 'store'}",
        ],
    )  # fmt: skip
    (warned,) = [line for line in plan.warnings if line.startswith("shadows are trained unlike the targets")]
    assert "(recipe.epochs 1 instead of 40)" in warned
    document = audited(plan, tmp_path / "out").document
    assert warned in document["warnings"]
    rows = {(each["unlearner"], each["attack"]): each for each in document["table"]}
    assert all(rows[name, "loss_threshold"]["void"] for name in ("identity", "gradient_ascent", "retrain"))
    assert any(line.startswith("control failed: promised false-alarm rates: ") for line in document["warnings"])
    assert PAGE.closing_lines(document)[0].startswith("Promised rates did not hold for loss threshold")

    def said(document) -> list[str]:
        gates = gates_of(["gradient_ascent.loss_threshold.auc=0.999"], HEADLINE, plan)
        return [line for line in failures(gates, HEADLINE, plan, document) if "promised false-alarm rates" in line]

    (line,) = said(document)
    assert "inconclusive" in line and "loss threshold" in line


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("shadow_model={name: cnn, settings: {}}", 'model.name "cnn" instead of "mlp"'),
        ("shadow_model={name: mlp, settings: {hidden: [16]}}", "model.settings.hidden [16] instead of [32]"),
        ("shadow_recipe={epochs: 10, learning_rate: 0.01, batch_size: 32}", "recipe.learning_rate 0.01 instead of"),
    ],
)
def test_shadows_unlike_the_targets_are_warned_about(override: str, words: str) -> None:
    assert any(words in line for line in load_plan("apollo-smoke", [override]).warnings)


def test_shadows_like_the_targets_are_not_warned_about() -> None:
    same = ["shadow_model={name: mlp, settings: {hidden: [32]}}"]
    same += ["shadow_recipe={epochs: 10, learning_rate: 0.002, batch_size: 32}"]
    for overrides in ([], same):
        assert not any("unlike" in line for line in load_plan("apollo-smoke", overrides).warnings)


def test_where_shadows_are_unlike_the_targets_an_interval_above_the_promise_voids_without_a_correction() -> None:
    doubtful = row("scrub", found_fpr=Estimate(0.12, 0.06, 0.2), found_fpr_p=0.02)
    others = [row("scrub", f"attack {number}") for number in range(40)]
    assert not any(void(doubtful, *others))
    judged_alone = judged_rows([doubtful, *others], 0.95, unlike={"base"})
    assert [(each.found_fpr_off, each.void) for each in judged_alone] == [(True, True)] + [(False, False)] * 40
    assert judged_rows([doubtful, *others], 0.95, given={"scrub"}) == judged_alone, (
        "nor does anybody vouch for a given model"
    )
    assert not any(each.void for each in judged_rows([doubtful, *others], 0.95, given={"finetune"}))
