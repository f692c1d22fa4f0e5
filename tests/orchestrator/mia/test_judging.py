"""Controls of a membership audit: verdict and gate draw the same from the same rows, and order changes nothing."""

from __future__ import annotations

import random
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator.judgement.estimate import Estimate, Span
from orchestrator.judgement.gate import gates_of, judge_gates
from orchestrator.mia.headline import HEADLINE
from orchestrator.mia.result.judging import judge
from orchestrator.mia.result.rows import BlindRow, CanaryRow, FitRow, MiaResult, MiaRow, OwnRow
from orchestrator.report.result import SettingRow

BLANK: dict[str, Any] = {"Estimate": Estimate(), "Span": Span(), "str": "", "int": 0, "float": 0.0, "bool": False}
ACCESS = {"rmia": "posteriors", "loss": "posteriors", "label_gap": "labels", "boundary_distance": "labels"}
OFF = {"found_fpr_p": 1e-9, "found_fpr": Estimate(0.4, 0.35, 0.45)}


def around(auc: float) -> Estimate:
    """Return an AUC with a narrow interval."""
    return Estimate(auc, auc - 0.02, auc + 0.02)


def row(attack: str, auc: float = 0.5, **more: Any) -> MiaRow:
    """Return a row of many points."""
    values: dict[str, Any] = {
        "setting": "base", "attack": attack, "access": ACCESS[attack], "auc": around(auc), "promised_fpr": 0.1,
        "auc_p_holm": 0.001 if auc > 0.55 else 1.0, "pools": 8, "targets": 16, "members": 16000, "non_members": 16000,
        "found_fpr_p": 0.5, "null_fpr_p": 0.5,
    }  # fmt: skip
    return MiaRow(**({each.name: BLANK.get(str(each.type)) for each in fields(MiaRow)} | values | more))


def canaries(**areas: float) -> tuple[CanaryRow, ...]:
    """Return how well attacks find canaries."""
    return tuple(
        CanaryRow(setting="base", attack=name, access=ACCESS[name], canaries=40, auc=around(auc))
        for name, auc in areas.items()
    )


def own(**areas: float) -> tuple[OwnRow, ...]:
    """Return how attacks judge own models."""
    return tuple(
        OwnRow(setting="base", attack=name, access=ACCESS[name], auc=around(auc), promised_fpr=0.1, tpr=Estimate(0.2),
               found_fpr=Estimate(0.1))
        for name, auc in areas.items()
    )  # fmt: skip


FOUND = canaries(rmia=0.9, loss=0.8, label_gap=0.7)


def result(*rows: MiaRow, given: bool = False, **more: Any) -> MiaResult:
    """Return the judged result of rows; of a ``given`` model with own models that are seen, and fit."""
    plan: dict[str, Any] = {
        "audit": {"fpr": [0.1], "level": 0.95}, "split": {"train_size": 1000, "shadows": 8}, "data": {"name": "digits"},
        "model": {"name": "mlp"}, "target": {"weights": "w.pt"} if given else None,
    }  # fmt: skip
    fit = tuple(
        FitRow(setting="base", group=group, models=1, train_accuracy=0.9, test_accuracy=0.8, gap=0.1)
        for group in ("target", "own")
    )
    sources: dict[str, Any] = {"canaries": FOUND, "fit": fit}
    if given:
        blind = (BlindRow(setting="base", points=100, auc=around(0.5), p=0.4, by="trees", differ=False),)
        sources |= {
            "canaries": (),
            "own": own(**{each.attack: max(0.53, float(each.auc)) for each in rows}),
            "blind": blind,
        }
    return judge(
        MiaResult(
            **{
                "name": "mia-audit", "kind": "mia", "seed": 0, "plan": plan, "versions": {}, "table": rows,
                "shadows": (),
                "settings": (SettingRow(setting="base", overrides={}),), "epsilons": (), "discoveries": (),
                "exposed": (), "judge": "rmia", "level": 0.95, "expected_misses": 0.1, **sources, **more,
            }
        )
    )  # fmt: skip


def outcomes(found: MiaResult, *limits: str) -> list[str]:
    """Return how a result stands to limits."""
    attacks = [each.attack for each in found.table]
    plan: Any = SimpleNamespace(audit=SimpleNamespace(attacks=attacks))
    return [
        each.outcome for each in judge_gates(gates_of(limits, HEADLINE, plan), HEADLINE, plan, found.document()).limits
    ]


def levels(found: MiaResult) -> list[str]:
    """Return what the verdict says of the judge, and of attacks on labels."""
    assert found.verdict is not None
    return [each.level for each in found.verdict.findings]


def states(found: MiaResult) -> dict[str, str]:
    """Return the controls of the verdict."""
    assert found.verdict is not None
    return {each.name: each.state for each in found.verdict.controls}


NULL, UNTOLD, LEAK = "no leak seen", "cannot be told", "leak"
ROWS = (row("rmia"), row("loss"), row("label_gap"))
LIMITS = ("auc=0.6", "loss.auc=0.6", "labels.auc=0.6")


def test_beside_controls_that_hold_null_results_stand_and_limits_pass() -> None:
    assert levels(result(*ROWS)) == [NULL, NULL] and outcomes(result(*ROWS), *LIMITS) == ["passed"] * 3
    found = result(*ROWS[:2], given=True)
    assert levels(found) == [NULL] and outcomes(found, *LIMITS[:2]) == ["passed"] * 2
    assert set(states(found).values()) == {"held"} and "own models" in states(found) and "canaries" not in states(found)


def test_a_promise_that_one_attack_breaks_takes_back_the_null_results_of_its_setting() -> None:
    found = result(ROWS[0], row("loss", **OFF), ROWS[2])
    assert levels(found) == [UNTOLD, UNTOLD] and outcomes(found, *LIMITS) == ["inconclusive"] * 3
    assert [each.attack for each in found.table if each.void] == ["loss"]
    leak = result(row("rmia", 0.7), row("loss", **OFF), ROWS[2])
    assert levels(leak) == [LEAK, UNTOLD]
    assert outcomes(leak, "auc=0.6", "loss.tpr=0.3", *LIMITS[1:]) == ["failed", *["inconclusive"] * 3]


def test_without_canaries_no_null_result_stands() -> None:
    found = result(*ROWS, canaries=())
    assert states(found)["canaries"] == "missing"
    assert levels(found) == [UNTOLD, UNTOLD] and outcomes(found, *LIMITS) == ["inconclusive"] * 3
    leak = result(row("rmia", 0.7), *ROWS[1:], canaries=())
    assert levels(leak)[0] == LEAK and outcomes(leak, "auc=0.6") == ["failed"]


def test_attacks_on_labels_rest_on_what_they_find_themselves() -> None:
    rows = (*ROWS, row("boundary_distance"))
    found = result(*rows, canaries=canaries(rmia=0.9, loss=0.8, label_gap=0.5))
    assert levels(found) == [NULL, UNTOLD] and states(found)["canaries"] == "failed"
    assert outcomes(found, *LIMITS) == ["passed", "passed", "inconclusive"]
    # one of them that finds canaries is enough, of which the other was not asked
    assert levels(result(*rows)) == [NULL, NULL] and outcomes(result(*rows), "labels.auc=0.6") == ["passed"]
    assert outcomes(result(*rows), "boundary_distance.auc=0.6") == ["inconclusive"]


@pytest.mark.parametrize("given", [False, True])
def test_the_judge_decides_and_else_what_sees_most_in_any_order(given: bool) -> None:
    name, rows = ("own models", ROWS[:2]) if given else ("canaries", ROWS)
    what = own(loss=0.53, rmia=0.5) if given else canaries(label_gap=0.9, loss=0.8, rmia=0.5)
    field = "own" if given else "canaries"
    orders = [random.Random(seed).sample(rows, len(rows)) for seed in range(4)]
    for order in orders:
        found = result(*order, given=given, **{field: tuple(reversed(what))})
        own_rows = [each.attack for each in found.controls if each.name == name]
        assert own_rows == (["rmia", "loss"] if given else ["rmia", "label_gap", "loss"])
        assert levels(found)[0] == UNTOLD and outcomes(found, "auc=0.6") == ["inconclusive"]
        failed = [each for each in found.verdict.controls if each.state == "failed"] if found.verdict else []
        assert [each.name for each in failed] == [name] and "RMIA" in failed[0].why


def test_a_judge_without_a_result_leaves_its_finding_untold() -> None:
    found = result(*ROWS[1:])
    assert levels(found) == [UNTOLD, NULL] and found.verdict is not None and found.verdict.level == UNTOLD
    assert states(found)["canaries"] == "held"


def test_beside_a_given_model_each_control_draws_its_own() -> None:
    leak = (row("rmia", 0.7), ROWS[1])
    blind = (BlindRow(setting="base", points=100, auc=around(0.7), p=0.0125, by="trees", differ=True),)
    for rows, level in ((ROWS[:2], UNTOLD), (leak, UNTOLD)):  # what differs without the model may be no membership
        found = result(*rows, given=True, blind=blind)
        assert levels(found) == [level] and outcomes(found, "auc=0.6") == ["inconclusive"]
        assert states(found)["members without the model"] == "failed"
    for rows, auc in ((ROWS[:2], 0.9), (leak, 0.9), (leak, 0.53)):  # the given one has less, or more
        found = result(*rows, given=True, own=own(rmia=auc, loss=0.53))
        assert states(found)["agreement with own models"] == "failed"
        assert levels(found) == [UNTOLD] and outcomes(found, "auc=0.6") == ["inconclusive"]
    unlike = tuple(
        FitRow(setting="base", group=group, models=1, train_accuracy=train, test_accuracy=0.8, gap=0.1)
        for group, train in (("target", 0.8), ("own", 1.0))
    )
    for more, name in (
        ({"fit": unlike}, "fit of own models"),
        ({"own": ()}, "own models"),
    ):
        null, seen = result(*ROWS[:2], given=True, **more), result(*leak, given=True, **more)
        assert states(null)[name] == ("missing" if name == "own models" else "failed")
        assert levels(null) == [UNTOLD] and outcomes(null, "auc=0.6") == ["inconclusive"]
        assert levels(seen) == [LEAK] and outcomes(seen, "auc=0.6") == ["failed"]
    turned = result(ROWS[0], row("loss", 0.3, auc_p_holm=0.001), given=True)
    assert states(turned)["direction of scores"] == "failed"
    assert levels(turned) == [UNTOLD] and outcomes(turned, "auc=0.6", "rmia.auc=0.6") == ["inconclusive"] * 2
