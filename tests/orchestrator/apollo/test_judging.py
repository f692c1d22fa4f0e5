"""Controls of an Apollo result decide once, for the verdict and for limits alike."""

from __future__ import annotations

import random
from typing import Any

import pytest

from orchestrator.apollo.result.rows import AttackRow, UtilityRow
from tests.orchestrator.apollo.judged_rows import (
    BROKEN,
    levels,
    limits,
    outcomes,
    result,
    row,
    states,
    verdict_of,
)

ATTACKS = ("apollo", "single_query", "lira")
LEAK, NONE, UNTOLD = "leak", "no leak seen", "cannot be told"


def rows(*own: AttackRow, without: str = "") -> list[AttackRow]:
    """Return rows of controls that hold and of two methods that leak nothing; ``own`` rows in place of those."""
    seen = {"identity": 0.7, "scrub": 0.5, "finetune": 0.5, "retrain": 0.5}
    found = {(name, attack): row(name, attack, auc) for name, auc in seen.items() for attack in ATTACKS}
    found |= {(each.unlearner, each.attack): each for each in own}
    return [each for each in found.values() if each.unlearner != without]


def test_without_a_failure_null_results_stand_and_limits_pass() -> None:
    found = result(rows())
    assert levels(found) == {"scrub": NONE, "finetune": NONE} and verdict_of(found).level == NONE
    assert [(each.name, each.state) for each in verdict_of(found).controls] == [
        ("retrain", "held"), ("identity", "held"), ("direction of scores", "held"),
        ("promised false-alarm rates", "held"),
    ]  # fmt: skip
    assert outcomes(found, "auc=0.6", "scrub.lira.auc=0.6", "posteriors.auc=0.6") == ["passed"] * 3
    assert [each.attack for each in found.controls if each.name == "identity"] == [*ATTACKS]


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_attacks_decides_nothing(seed: int) -> None:
    own = [row("identity", "apollo"), row("identity", "lira", 0.8), row("scrub", "lira", 0.3)]
    found, table = result(rows(*own)), rows(*own)
    random.Random(seed).shuffle(table)
    other = result(table)
    texts = ["labels.auc=0.6", "posteriors.auc=0.6", "scrub.apollo.auc=0.6", "finetune.apollo.auc=0.6"]
    assert outcomes(found, *texts) == outcomes(other, *texts)
    assert (levels(found), states(found)) == (levels(other), states(other))


@pytest.mark.parametrize("auc", [0.4, 0.6])
def test_beside_retrained_models_off_chance_nothing_counts(auc: float) -> None:
    found = result(rows(row("retrain", "lira", auc), row("scrub", "apollo", 0.7)))
    assert states(found)["retrain"] == "failed" and {*levels(found).values()} == {UNTOLD}
    assert outcomes(found, "auc=0.6", "auc=0.9", "finetune.apollo.auc=0.6") == ["inconclusive"] * 3


def test_without_retrained_models_no_null_result_counts_and_a_leak_stands() -> None:
    found = result(rows(row("scrub", "apollo", 0.7), without="retrain"))
    assert states(found)["retrain"] == "missing" and levels(found) == {"scrub": LEAK, "finetune": UNTOLD}
    assert outcomes(found, "auc=0.6", "auc=0.9", "finetune.apollo.auc=0.6") == ["failed", *["inconclusive"] * 2]


def test_untouched_models_must_show_to_one_of_the_attacks_that_is_looked_at() -> None:
    found = result(rows(row("identity", "apollo"), row("identity", "single_query"), row("scrub", "apollo", 0.7)))
    assert states(found)["identity"] == "held" and levels(found) == {"scrub": LEAK, "finetune": NONE}
    assert outcomes(found, "labels.auc=0.9", "labels.auc=0.6", "posteriors.auc=0.9") == [
        "inconclusive", "failed", "passed",
    ]  # fmt: skip
    own = [each for each in found.controls if each.name == "identity"]
    assert [(each.attack, each.state) for each in own] == [
        ("lira", "held"), ("apollo", "failed"), ("single_query", "failed"),
    ]  # fmt: skip
    blind = result(rows(*(row("identity", attack) for attack in ATTACKS), row("scrub", "apollo", 0.7)))
    assert states(blind)["identity"] == "failed" and levels(blind) == {"scrub": LEAK, "finetune": UNTOLD}


def test_untouched_models_without_a_result_hold_no_null_result() -> None:
    found = result(rows(without="identity"))
    assert states(found)["identity"] == "missing" and {*levels(found).values()} == {UNTOLD}
    assert outcomes(found, "auc=0.9", "scrub.lira.auc=0.9") == ["inconclusive"] * 2
    one = [each for each in rows() if (each.unlearner, each.attack) != ("identity", "apollo")]
    assert states(result(one))["identity"] == "held"
    assert outcomes(result(one), "labels.auc=0.9", "scrub.apollo.auc=0.9") == ["passed", "inconclusive"]


def test_an_oracle_decides_only_where_nothing_else_is_looked_at() -> None:
    oracle = [
        row(name, "u_mia_oracle", 0.5 if name != "identity" else 0.9) for name in ("identity", "scrub", "retrain")
    ]
    blind = [row("identity", attack) for attack in ATTACKS]
    found = result(rows(*blind, *oracle))
    assert states(found)["identity"] == "failed" and {*levels(found).values()} == {UNTOLD}
    assert outcomes(found, "oracle.auc=0.9", "scrub.u_mia_oracle.auc=0.9") == ["inconclusive", "passed"]
    assert [each.attack for each in found.controls if each.name == "identity"][-1] == "u_mia_oracle"


def test_a_method_that_forgot_too_much_has_no_null_result_by_any_attack() -> None:
    found = result(rows(row("scrub", "lira", 0.3)))
    assert states(found)["direction of scores"] == "failed" and levels(found) == {"scrub": UNTOLD, "finetune": NONE}
    assert outcomes(found, "labels.auc=0.9", "scrub.apollo.auc=0.9", "finetune.apollo.auc=0.9") == [
        "inconclusive", "inconclusive", "passed",
    ]  # fmt: skip
    assert verdict_of(found).advice.startswith("Do not treat this as erasure.")
    leaky = result(rows(row("scrub", "lira", 0.3), row("scrub", "apollo", 0.6)))
    assert levels(leaky)["scrub"] == LEAK


def test_what_differs_most_from_one_half_says_which_way_round_a_method_stands() -> None:
    found = result(rows(row("scrub", "lira", 0.8), row("scrub", "apollo", 0.4)))
    own = [(each.lines, each.attack, each.state) for each in found.controls if each.subject == "scrub"]
    assert own == [
        ("all", None, "held"), ("attack", "lira", "held"), ("attack", "apollo", "failed"),
        ("attack", "single_query", "held"),
    ]  # fmt: skip
    assert outcomes(found, "posteriors.auc=0.9", "labels.auc=0.9") == ["passed", "inconclusive"]
    over = result(rows(row("scrub", "apollo_over", 0.3)))
    assert states(over)["direction of scores"] == "held", "it looks for points that were forgotten too hard"
    oracle = result(rows(row("scrub", "u_mia_oracle", 0.3)))
    assert states(oracle)["direction of scores"] == "held", "an oracle is no attack"


def test_a_method_without_a_result_of_the_plans_judge_has_no_null_result() -> None:
    lost = [each for each in rows() if (each.unlearner, each.attack) != ("scrub", "apollo")]
    found = result(lost)
    assert levels(found) == {"scrub": UNTOLD, "finetune": NONE} and {*states(found).values()} == {"held"}
    assert outcomes(found, "auc=0.9", "scrub.lira.auc=0.9") == ["inconclusive", "passed"]
    assert levels(result([each for each in rows() if each.attack != "apollo"])) == {"scrub": NONE, "finetune": NONE}
    plan = {"audit": {"kind": "apollo", "attacks": [*ATTACKS], "level": 0.95}}
    nowhere = result([each for each in rows() if each.attack != "apollo"], **plan)
    assert {*levels(nowhere).values()} == {UNTOLD}, "it failed against every method"
    leak = [row("scrub", "lira", 0.7) if each.attack == "lira" and each.unlearner == "scrub" else each for each in lost]
    assert levels(result(leak))["scrub"] == LEAK
    other = [each for each in rows() if (each.unlearner, each.attack) != ("scrub", "lira")]
    assert levels(result(other)) == {"scrub": NONE, "finetune": NONE}, "another attack is named in the warnings"


def test_a_broken_promise_takes_back_null_results_of_its_setting_and_no_leak() -> None:
    found = result(rows(row("scrub", "lira", **BROKEN), row("finetune", "apollo", 0.7)))
    assert states(found)["promised false-alarm rates"] == "failed"
    assert levels(found) == {"scrub": UNTOLD, "finetune": LEAK}
    assert outcomes(found, "auc=0.6", "scrub.apollo.auc=0.6") == ["failed", "inconclusive"]
    (void,) = limits(found, "scrub.lira.tpr=0.9")
    assert (void.value, void.outcome) == (None, "inconclusive")
    assert outcomes(found, "finetune.apollo.tpr=0.01") == ["failed"], "hit rates of other lines stand"


def test_controls_of_one_setting_say_nothing_of_another() -> None:
    blind = [row(each.unlearner, each.attack, 0.5, setting="weak") for each in rows()]
    found = result([*rows(), *blind], settings=["base", "weak"])
    assert states(found)["identity"] == "held" and levels(found) == {"scrub": NONE, "finetune": NONE}
    (told,) = (each.why for each in verdict_of(found).controls if each.name == "identity")
    assert "1 other setting" in told
    assert {each.level for each in verdict_of(found).findings if each.setting == "weak"} == {UNTOLD}
    assert outcomes(found, "auc=0.9") == ["inconclusive"], "it looks at all settings"


def test_controls_alone_have_their_states() -> None:
    found = result([each for each in rows() if each.control_of])
    assert states(found) == {"retrain": "held", "identity": "held", "promised false-alarm rates": "held"}
    assert verdict_of(found).findings == () and outcomes(found, "identity.apollo.auc=0.9") == ["passed"]


def fit(unlearner: str, kept: float, test: float) -> UtilityRow:
    return UtilityRow(unlearner=unlearner, target=0, retain_accuracy=kept, forget_accuracy=test, test_accuracy=test,
                      flag="")  # fmt: skip


@pytest.mark.parametrize(("kept", "state"), [(0.9, "held"), (0.75, "failed")])
def test_a_given_model_must_have_learnt_what_it_has_kept(kept: float, state: str) -> None:
    plan: dict[str, Any] = {"target": {"weights": "w.pt", "members": "0:9", "forget": "0:3"}}
    found = result(rows(without="finetune"), [fit("scrub", kept, 0.75), fit("retrain", 0.95, 0.75)], **plan)
    assert states(found)["members are learnt"] == state
    assert levels(found) == {"scrub": NONE if state == "held" else UNTOLD}
    alike = result(rows(without="finetune"), [fit("scrub", kept, 0.75), fit("retrain", 0.76, 0.75)], **plan)
    assert "members are learnt" not in states(alike)


def test_what_controls_say_of_a_given_model_depends_on_its_original() -> None:
    told = set()
    for original in ({}, {"original": "o.pt"}):
        target = {"weights": "w.pt", "members": "0:9", "forget": "0:3", **original}
        for auc in (0.5, 0.7):
            found = result(rows(*(row("identity", attack, auc) for attack in ATTACKS)), target=target)
            (control,) = (each for each in verdict_of(found).controls if each.name == "identity")
            assert control.state == ("held" if auc > 0.5 else "failed")
            told.add(control.why)
    assert len(told) == 4
