"""An attack that raises costs its own rows: it is named, no gate passes, the next run tries it again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from audits.apollo.attacks.base import ATTACKS as APOLLO
from audits.gnq.attacks import POOL_ATTACKS as GNQ
from audits.mia.attacks import MIA_ATTACKS as MIA
from audits.tmia.attacks import ATTACKS as TMIA
from orchestrator.engine.run.attempts import Attempts
from orchestrator.engine.store.faults import FAULTS
from orchestrator.judgement.gate import failures, gates_of
from orchestrator.kinds import kind_named
from tests.cases.runs import audited, draw_only
from tests.cases.smallest_plans import REMOVAL, smallest_plan

CASES = {
    "apollo": (APOLLO, "find", "single_query", "identity.single_query.auc=0.99"),
    "tmia": (TMIA, "find", "label_gap", "precision=0.99"),
    "gnq": (GNQ, "scores", "white_box", "white_box.auc=0.99"),
    "mia": (MIA, "find", "loss", "loss.auc=0.99"),
}
FEW: dict[str, dict[str, Any]] = {
    "apollo": {"audit.attacks": ["single_query", "lira"], "audit.radii": False, "audit.disclosure": False},
    "tmia": {"audit.attacks": ["label_gap", "yeom"], "audit.selectors": ["none"]},
    "gnq": {
        "audit.attacks": ["white_box", "loss"],
        "audit.inversion": None,
        "audit.gradient_inversion": None,
        "defences": [REMOVAL],
    },
    "mia": {"audit.attacks": ["loss", "label_gap"]},
}
"""The attack that raises and another one."""


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=[pytest.mark.long] * (kind != "mia")) for kind in CASES])
def test_an_attack_that_raises_costs_its_rows_alone(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    draw_only(monkeypatch)
    registry, method, name, limit = CASES[kind]
    plan = smallest_plan(kind, tmp_path / "store", **FEW[kind])
    assert name in plan.audit.attacks  # type: ignore[attr-defined]  # all kinds have attacks

    def explode(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("all weights are zero\nand more")

    with monkeypatch.context() as patched:
        patched.setattr(registry[name], method, explode)
        document = audited(plan, tmp_path / "out").document
    told = [line for line in document["warnings"] if line.startswith(f"attack {name} failed")]
    assert told and all(line.endswith("ZeroDivisionError: all weights are zero") for line in told)
    spoken = {row["attack"] for row in document["table"]}
    assert spoken == set(plan.audit.attacks) - {name}  # type: ignore[attr-defined]  # likewise
    headline = kind_named(kind).headline
    lines = failures(gates_of([limit], headline, plan), headline, plan, document)
    assert any("inconclusive: no result of " in line and name in line for line in lines)
    kind_named(kind).open_page().write(tmp_path / "out", None)
    partly = pq.read_table(tmp_path / "out" / "scores.parquet")

    capsys.readouterr()
    again = audited(plan, tmp_path / "out")
    assert "in which an attack failed, to be done again" in capsys.readouterr().out
    assert {row["attack"] for row in again.document["table"]} == set(plan.audit.attacks)  # type: ignore[attr-defined]
    whole = pq.read_table(tmp_path / "out" / "scores.parquet")
    if "attack" in whole.column_names:
        others = whole.filter(pc.not_equal(whole["attack"], name))
    else:
        others = whole.select([column for column in whole.column_names if column in partly.column_names])
    common = [column for column in others.column_names if column in partly.column_names]
    assert repr(others.select(common).to_pydict()) == repr(partly.select(common).to_pydict())  # NaN equals NaN here


@pytest.mark.parametrize("fault", FAULTS)
def test_trouble_with_the_store_is_not_taken_for_an_attack_that_failed(fault: type[Exception]) -> None:
    def read() -> None:
        raise fault("artefact train/0 is damaged")

    attempts = Attempts()
    with pytest.raises(fault, match="is damaged"):
        attempts.of("white_box", read)
    assert attempts.failed == {}
