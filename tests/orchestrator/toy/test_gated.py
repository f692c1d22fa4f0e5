"""The outcome of a release gate: in result.json, on the page, in MLflow, on the terminal, and as the exit code."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.main import main
from orchestrator.judgement.gate import judge_gates, parse_gate
from orchestrator.judgement.gate_result import GateResult
from orchestrator.judgement.rows import NULLS
from orchestrator.report.writing import template
from tests.orchestrator.toy import kind
from tests.orchestrator.toy.bench import Bench, control, controlled

PASSED, FAILED = "auc=0.99", "right.auc=0.1"
BLIND = "sees nothing"


@pytest.fixture
def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the control of every result fail."""
    controlled(monkeypatch, control("power", "failed", BLIND), control("null", "held"))


def run(bench: Bench, *limits: str, more: Sequence[str] = ()) -> tuple[int, Path]:
    """Return the exit code of an audit with limits, and its folder."""
    out = bench.place / "gated"
    words = [word for limit in limits for word in ("--fail-above", limit)]
    return bench.command("audit", "toy", "--out", str(out), *words, *more), out


def read(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / "result.json").read_text())
    return found


def test_a_passed_gate_is_told_everywhere(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    code, out = run(bench, PASSED)
    document = read(out)
    worst = max(document["table"], key=lambda row: row["auc"])
    told = f"auc is {worst['auc']:.3f} (base, {worst['attack']})"
    assert code == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"gate {PASSED}: passed: {told}"
    assert document["gate"] == {
        "outcome": "passed",
        "limits": [
            {
                "limit": PASSED, "metric": "auc", "at_most": 0.99, "value": worst["auc"],
                "where": f"base, {worst['attack']}", "outcome": "passed", "reasons": [],
            }
        ],
        "controls": [],
    }  # fmt: skip
    page = (out / "report.html").read_text()
    assert "Release gate: passed" in page and f"<b>{PASSED}: passed</b>{told}" in page
    assert main(["report", str(out)]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"gate {PASSED}: passed: {told}"
    assert (out / "report.html").read_text() == page


def test_one_failed_limit_fails_the_gate_in_the_tracker_too(bench: Bench) -> None:
    from mlflow import MlflowClient

    code, out = run(bench, PASSED, FAILED)
    document = read(out)
    assert code == 1
    assert [limit["outcome"] for limit in document["gate"]["limits"]] == ["passed", "failed"]
    assert document["gate"]["outcome"] == "failed"
    assert "Release gate: failed" in (out / "report.html").read_text()
    client = MlflowClient(tracking_uri=bench.tracker)
    (parent, *_) = client.search_runs(
        [client.get_experiment_by_name("orch").experiment_id], "tags.`orch.level` = 'parent' and tags.`orch.gate` != ''"
    )
    value = document["gate"]["limits"][1]["value"]
    assert parent.data.tags["orch.gate"] == "failed"
    assert parent.data.tags["orch.gate.right.auc"].endswith(f"failed: auc is {value:.3f} (base, right), above 0.1")
    assert parent.data.metrics["gate.passed"] == 0.0
    assert parent.data.metrics["gate.right.auc"] == pytest.approx(value)


def test_a_control_that_failed_for_one_limit_has_failed() -> None:
    """Each limit has the controls of its own lines; the list of all does not say that one held which did not."""
    headline = kind.KIND.headline
    rows = [{"setting": "base", "attack": name, "auc": 0.6} for name in ("right", "loss")]
    controls = [
        control("power", "held", protects=NULLS, attack="right", lines="attack"),
        control("power", "failed", "none", protects=NULLS, attack="loss", lines="attack"),
    ]
    texts = ("loss.auc=0.9", "loss.auc=0.5", "right.auc=0.9")
    gates = [parse_gate(text, headline) for text in texts]
    found = judge_gates(gates, headline, None, {"table": rows, "controls": [each.write() for each in controls]})
    assert [limit.outcome for limit in found.limits] == ["inconclusive", "failed", "passed"]
    assert [(each.name, each.state, each.why) for each in found.controls] == [("power", "failed", "none")]
    (tags,) = [told for name, told in found.tags().items() if name == "orch.gate.loss.auc"]
    assert tags == f"{found.limits[0].sentence()}; {found.limits[1].sentence()}"


@pytest.mark.usefixtures("blind")
@pytest.mark.parametrize("limit", [PASSED, pytest.param(FAILED, marks=pytest.mark.long)])
def test_beside_a_failed_control_no_limit_is_passed_nor_believed(
    bench: Bench, capsys: pytest.CaptureFixture[str], limit: str
) -> None:
    code, out = run(bench, limit)
    gate = GateResult.of(read(out))
    assert (code, gate.outcome) == (1, "inconclusive")
    (line,) = [text for text in capsys.readouterr().out.splitlines() if text.startswith("gate ")]
    assert line.startswith(f"gate {limit}: inconclusive: ") and f"control power: {BLIND}" in line
    assert f"{gate.limits[0].metric} is {gate.limits[0].value:.3f} (" in line
    assert gate.tags()[f"orch.gate.{gate.limits[0].name}"] == line
    assert [(each.name, each.state, each.why) for each in gate.controls] == [
        ("power", "failed", BLIND), ("null", "held", ""),
    ]  # fmt: skip
    assert "Release gate: inconclusive" in (out / "report.html").read_text()


@pytest.mark.long
def test_a_limit_that_is_not_given_again_is_void_in_the_tracker(bench: Bench) -> None:
    """In short: the tracker above, and ``engine/run/test_live.py``, of any number that is void at the end."""
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=bench.tracker)
    again = ["--set", "seed=77", "--out", str(bench.place / "again")]
    assert run(bench, PASSED, FAILED, more=again)[0] == 1

    def parent() -> Any:
        experiment = client.get_experiment_by_name("orch").experiment_id
        (found,) = client.search_runs([experiment], "tags.`orch.level` = 'parent' and tags.`orch.seed` = '77'")
        return found.data

    assert "orch.gate.right.auc" in parent().tags
    assert run(bench, PASSED, more=again)[0] == 0
    assert "orch.gate.right.auc" not in parent().tags and parent().tags["orch.gate"] == "passed"
    assert math.isnan(parent().metrics["gate.right.auc"]) and parent().metrics["gate.passed"] == 1.0
    assert run(bench, more=again)[0] == 0
    assert not [name for name in parent().tags if name.startswith("orch.gate")]
    assert math.isnan(parent().metrics["gate.passed"])


@pytest.mark.long
def test_without_limits_there_is_no_gate(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    run(bench, FAILED)
    capsys.readouterr()
    code, out = run(bench)
    assert code == 0
    assert "\ngate " not in capsys.readouterr().out
    assert "gate" not in read(out)
    assert "Release gate" not in (out / "report.html").read_text()


def test_the_page_escapes_what_a_gate_says() -> None:
    gate = GateResult.of(
        {
            "gate": {
                "outcome": "failed",
                "controls": [],
                "limits": [
                    {
                        "limit": "auc=0", "metric": "auc", "at_most": 0, "value": 1, "where": "<b>",
                        "outcome": "failed", "reasons": ["auc is 1 (<b>), above 0"],
                    }
                ],
            }
        }
    )  # fmt: skip
    assert "(&lt;b&gt;)" in template("orchestrator.report", "gate.html.j2").render(run={"gate": gate})
