"""A page of Apollo with all that a page can have, made once for all tests; to draw its figures takes long."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from orchestrator.judgement.gate import gates_of, judge_gates
from orchestrator.kinds import kind_named, plan_from
from orchestrator.report import writing
from orchestrator.report.result import read_result
from tests.cases import apollo_result
from tests.cases.drawn import drawn
from tests.cases.kept import sketch


def whole_page() -> Path:
    """Return the folder of the run of ``write_whole_run``, put to two limits, with its page; nobody may change it."""
    return drawn("apollo page", write_page, __file__, apollo_result.__file__)


def sketched_page() -> Path:
    """Return the folder of the same run with the same page, whose figures are made of their numbers but not drawn."""
    return drawn("sketched apollo page", write_sketched, __file__, apollo_result.__file__)


def write_sketched(out: Path) -> None:
    """Write what ``write_page`` does, and draw nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "save", sketch)
        write_page(out)


def write_page(out: Path) -> None:
    """Write the run and its page, with pictures of exposed points."""
    apollo_result.write_whole_run(out)
    document, kind = read_result(out), kind_named("apollo")
    plan = plan_from(document["plan"])
    gates = gates_of(["auc=0.6", "posteriors.auc=0.95"], kind.headline, plan)
    document["gate"] = judge_gates(gates, kind.headline, plan, document).to_json()
    (out / "result.json").write_text(json.dumps(document), encoding="utf-8")
    rng = np.random.default_rng(0)
    pictures = {point["point_id"]: rng.random((14, 14)) for point in document["exposed"]["points"]}
    kind.open_page().write(out, pictures)
