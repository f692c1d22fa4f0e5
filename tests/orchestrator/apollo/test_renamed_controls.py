"""A control under another name (``as``) is a control: the method decides, in every table, verdict and gate."""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from audits.errors import BadInput
from orchestrator.apollo.headline import HEADLINE
from orchestrator.apollo.page.attacks import unlearner
from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.page.tables import exposure_lines
from orchestrator.apollo.page.verdict import verdict
from orchestrator.apollo.result.controls import judged_rows
from orchestrator.apollo.result.judging import judge
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.gate import failures, gates_of
from orchestrator.kinds import load_plan
from tests.cases.apollo_result import write_run
from tests.cases.runs import audited
from tests.cases.smallest_plans import APOLLO
from tests.orchestrator.apollo.test_controls import row

NAMES = {"retrain": "fresh", "identity": "kept"}


def renamed(value: Any, names: Mapping[str, str] = NAMES) -> Any:
    """Return a result whose controls have other names, in rows, in the plan and in objects by method."""
    if isinstance(value, list):
        return [renamed(each, names) for each in value]
    if not isinstance(value, dict):
        return value
    found = {names.get(key, key): renamed(each, names) for key, each in value.items()}
    if found.get("method") in names:
        found["as"] = names[found["method"]]
    if (own := found.get("unlearner")) in names:
        found |= {"unlearner": names[own], **({"method": own} if "auc_p" in found else {})}
    return found


def plain(text: object) -> str:
    """Return words about renamed controls as those about controls by their own names."""
    found = str(text)
    for own, other in NAMES.items():
        found = found.replace(f"{other} (control)", f"{own} (control)").replace(f"'{other}'", f"'{own}'")
    return found


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    document = write_run(tmp_path_factory.mktemp("run") / "out")
    return document, again(renamed(copy.deepcopy(document)))


def again(document: dict[str, Any]) -> dict[str, Any]:
    """Return a result that is judged by its rows."""
    return judge(ApolloRun.of(document).result).document()


def test_a_renamed_control_stands_in_the_place_of_the_control() -> None:
    entries = "unlearning=[{method: identity, as: kept}, {method: scrub}, {method: retrain, as: fresh}]"
    plan: Any = load_plan(None, [entries])
    assert [entry.label for entry in plan.unlearning] == ["kept", "scrub", "fresh"]
    assert not any("control" in note for note in plan.notes)


@pytest.mark.parametrize("name", ["retrain", "identity"])
def test_no_other_method_takes_the_name_of_a_control(name: str) -> None:
    with pytest.raises(BadInput, match=f"'{name}' is the name of a control"):
        load_plan(None, [f"unlearning=[{{method: scrub, as: {name}}}, {{method: {name}, as: other}}]"])


def test_page_and_verdict_are_those_of_the_controls_own_names(results: tuple[dict[str, Any], dict[str, Any]]) -> None:
    own, other = (ApolloRun.of(each) for each in results)
    assert other.result.verdict == own.result.verdict and other.result.controls == own.result.controls
    assert plain(verdict(other)) == plain(verdict(own))
    assert exposure_lines(other) == exposure_lines(own)
    for place, name in enumerate(("identity", "retrain")):
        shown = unlearner(other, NAMES[name])
        assert shown.text == NAMES[name] and shown == replace(unlearner(own, name), text=shown.text), place
    given = copy.deepcopy(results[1])
    given["plan"]["target"] = {"weights": "w.pt", "members": "0:9", "forget": "0:3"}
    told = again(given)
    assert unlearner(ApolloRun.of(told), "fresh") == unlearner(other, "fresh")  # never "given model (by fresh)"
    assert [each["subject"] for each in told["verdict"]["findings"]] == [
        f"Given model (by {name})" for name in ("gradient ascent", "finetune", "SCRUB")
    ]


def test_gates_read_the_same_controls(results: tuple[dict[str, Any], dict[str, Any]]) -> None:
    lines = []
    for document in results:
        attacks = json.dumps(document["plan"]["audit"]["attacks"])
        plan = load_plan(None, [f"unlearning={json.dumps(document['plan']['unlearning'])}", f"audit.attacks={attacks}"])
        lines.append(failures(gates_of(["auc=0.5", "auc=0.99"], HEADLINE, plan), HEADLINE, plan, document))
    assert lines[0] == lines[1] and "control" not in " ".join(lines[1])


def test_controls_of_one_kind_are_each_a_test_of_their_own() -> None:
    def control(name: str, auc: float, p: float) -> Any:
        return row(0.1, 0.05, unlearner=name, method="retrain", auc=Estimate(auc, auc - 0.1, auc + 0.1), auc_p=p)

    rows = judged_rows([control("fresh", 0.5, 0.9), control("again", 0.9, 0.001), row(0.1, 0.05)], 0.95)
    assert [each.control for each in rows] == ["held", "off chance", None]
    assert [each.control_p_holm for each in rows] == [pytest.approx(0.9), pytest.approx(0.002), None]
    rates = {"fresh": 1e-6, "again": 0.9}
    broken = [replace(control(name, 0.5, 0.9), found_fpr_p=p) for name, p in rates.items()]
    assert all(each.void for each in judged_rows([*broken, row(0.1, 0.05)], 0.95))  # against all methods of the setting


@pytest.mark.slow
def test_an_audit_by_other_names_has_the_same_numbers(tmp_path: Path) -> None:
    values = {name: value for name, value in APOLLO.items() if not name.startswith("unlearning")}
    method = {"method": "gradient_ascent", "learning_rate": 0.04, "epochs": 1}
    found = []
    for out, names in (("own", {}), ("other", NAMES)):
        entries = [
            {"method": "identity", **({"as": names["identity"]} if names else {})}, method,
            {"method": "retrain", **({"as": names["retrain"]} if names else {})},
        ]  # fmt: skip
        more = {"unlearning": entries, "audit.attacks": ["single_query", "loss_threshold"]}
        store = {"compute.workers": 0, "compute.store": str(tmp_path / "store")}
        audited(load_plan("apollo-smoke", values={**values, **more, **store}), tmp_path / out)
        found.append(json.loads((tmp_path / out / "result.json").read_text()))
    assert found[1]["population"]["trained"] == 0  # a mere rename makes no model anew
    back = {other: own for own, other in NAMES.items()}
    for own, other in zip(*(document["table"] for document in found), strict=True):
        assert other.pop("method", None) == back.get(other["unlearner"])
        assert own == other | {"unlearner": back.get(other["unlearner"], other["unlearner"])}
    assert [each["control"] is None for each in found[1]["table"]] == [False] * 2 + [True] * 2 + [False] * 2
    assert [each["flag"] for each in found[0]["utility"]] == [each["flag"] for each in found[1]["utility"]]
