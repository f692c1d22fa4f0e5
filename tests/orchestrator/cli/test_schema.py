"""The published JSON Schema: it is that of the code, results fit it (``tests/conftest.py``), and broken ones do not."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.result.controls import RETRAIN
from orchestrator.cli.main import main
from orchestrator.cli.schema import FORMS, made, published
from orchestrator.judgement.rows import FINDINGS, HELD
from orchestrator.kinds import KINDS
from tests.cases.apollo_result import write_run
from tests.cases.runs import draw_only
from tests.cases.schemas import misfits, validator


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return ApolloRun.of(write_run(tmp_path_factory.mktemp("run"))).result.document()


@pytest.mark.parametrize("kind", FORMS)
def test_what_is_published_is_what_the_code_makes(kind: str) -> None:
    assert published(kind) == made(kind), "make it anew: orch schema --write orchestrator/schemas"
    validator(kind)


def test_every_kind_has_one_and_the_command_prints_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert {*KINDS, "score", "compare"} == FORMS.keys()
    assert main(["schema", "apollo"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["kind"] == {"const": "apollo"}
    assert main(["schema", "apolo"]) == 2
    assert "did you mean 'apollo'" in capsys.readouterr().err
    assert main(["schema"]) == 2


def test_a_gate_and_fields_of_later_versions_fit_and_broken_documents_do_not(drawn: dict[str, Any]) -> None:
    gate = {"outcome": "passed", "limits": [], "controls": [RETRAIN.row(FINDINGS, HELD, "base", "").write()]}
    assert misfits({**drawn, "gate": gate, "a field of later": 1}) == []
    row, *rows = drawn["table"]
    lacking = {name: value for name, value in row.items() if name != "auc"}
    for broken, place in (
        ({**drawn, "table": [{**row, "auc": "high"}, *rows]}, "$.table[0].auc"),
        ({**drawn, "table": [{**row, "more": 1}, *rows]}, "$.table[0]"),
        ({**drawn, "table": [lacking, *rows]}, "$.table[0]"),
        ({**drawn, "schema": "orch.result/1"}, "$.schema"),
        ({**drawn, "seed": None}, "$.seed"),
        ({**drawn, "gate": {**gate, "outcome": 1}}, "$.gate"),
        ({**drawn, "gate": {**gate, "outcome": "perhaps"}}, "$.gate"),
        ({**drawn, "table": [{**row, "control": "perhaps"}, *rows]}, "$.table[0].control"),
    ):
        assert any(each.startswith(f"{place}") for each in misfits(broken)), place


def test_judged_scores_and_comparisons_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    draw_only(monkeypatch)
    drawing = np.random.default_rng(0)
    for name in ("first", "second"):
        with Path(f"{name}.csv").open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(("point", "target", "member", "lira"))
            table.writerows(
                (point, target, point % 2, drawing.normal(point % 2)) for target in range(3) for point in range(40)
            )
        columns = ("--member", "member", "--score", "lira", "--group", "target", "--point", "point")
        assert main(["score", f"{name}.csv", *columns, "--out", name, "--fail-above", "auc=0.99"]) == 0
        assert misfits(json.loads(Path(name, "result.json").read_text())) == []
    assert main(["compare", "first", "second", "--out", "both"]) == 0
    assert misfits(json.loads(Path("both/compare.json").read_text())) == []
