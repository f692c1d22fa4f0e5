"""Reads a finished TMIA run from its folder."""

from __future__ import annotations

from pathlib import Path

from audits.data.bounded import columns_of
from orchestrator.report.result import read_result, read_scores, run_of
from orchestrator.tmia.result.controls import LOSSES
from orchestrator.tmia.result.given_rows import result_form
from orchestrator.tmia.result.run import TmiaRun


def read_tmia_run(out: Path) -> TmiaRun:
    """Read result.json and, of scores.parquet, the rows of LOSSES; BadInput for unfinished runs and other kinds."""
    document = read_result(out)
    result = run_of(document, result_form(document["plan"]), str(out / "result.json"))
    if result.aggregate_only:  # nothing is drawn of single scores
        return TmiaRun(result)
    chosen = [name for name in columns_of(out / "scores.parquet") if name.startswith("q_")]
    columns = ["setting", "group", "member", "statistic", *chosen]
    return TmiaRun(result, read_scores(out, columns, attack=LOSSES))
