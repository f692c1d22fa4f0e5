"""Judge files of scores and write result.json, scores.parquet, figures and page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from audits.errors import BadInput
from audits.writing import write_together
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.fingerprints import Fingerprints, queried, questions
from orchestrator.engine.run.output_folder import make_ready, refuse_strangers
from orchestrator.engine.store.payloads import pack_table
from orchestrator.judgement.gate import gates_of, judge_gates
from orchestrator.report.judged import DECISION
from orchestrator.scored.attacks import Attack
from orchestrator.scored.headline import HEADLINE
from orchestrator.scored.layouts.own import KIND, OURS, UNIT, judged_of
from orchestrator.scored.options import Options
from orchestrator.scored.page.page import PAGE
from orchestrator.scored.reading import read_scores
from orchestrator.scored.summing import summed_up

RESULT, SCORES = "result.json", "scores.parquet"


def score(
    paths: Sequence[Path],
    options: Options,
    out: Path | None,
    terminal: Terminal,
    command: str,
    limits: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the content of result.json; written to ``out``, where there is one, with all else.

    ``limits``: those of ``--fail-above``, refused before anything is computed where they name other attacks. Raises
    BadInput for files that cannot be judged, and an ``out`` that holds something else.
    """
    claim(out)
    scores = read_scores(paths, options)
    names = [attack.judged.attack for attack in scores.attacks]
    gates = gates_of(limits, HEADLINE, names)
    result, attacks = summed_up(scores, options, command)
    table = table_of(attacks)
    asked = questions(queried(judged_of(table, KIND)))
    document = replace(result, fingerprints=Fingerprints(data=None, **asked)).document()
    if gates:
        document["gate"] = judge_gates(gates, HEADLINE, names, document).to_json()
    if out is not None:
        make_ready(out)
        files = {SCORES: pack_table(table), RESULT: json.dumps(document, indent=1).encode()}
        write_together(out, files, private=True)
        PAGE.write(out)
    for table in PAGE.tables(document):
        terminal.table(table)
    for text in document["warnings"]:
        terminal.line(f"warning: {text}")
    if out is not None:
        terminal.closing(f"report: {out / 'report.html'}")
    for line in PAGE.closing_lines(document):
        terminal.closing(line)
    return document


def claim(out: Path | None) -> None:
    """Raise BadInput for a folder that is a file, or holds the result of something else."""
    if out is None:
        return
    if out.exists() and not out.is_dir():
        raise BadInput(f"--out {out} is a file; give a folder")
    file = out / RESULT
    if not file.is_file():
        refuse_strangers(out, mark=RESULT, way="choose another --out")
        return
    try:
        kind = json.loads(file.read_text(encoding="utf-8")).get("kind")
    except (ValueError, AttributeError, RecursionError):
        kind = None
    if kind != "score":
        raise BadInput(f"--out {out} holds the result of a run of kind {kind!r}; choose another --out")


def table_of(attacks: Sequence[Attack]) -> pa.Table:
    """Return the scores that were judged, one row for each attack, target and point; larger = more like a member."""
    tables = []
    for attack in attacks:
        judged, size = attack.judged, len(attack.judged.scores)
        columns = {
            "setting": pa.array([judged.setting]).take(pa.array([0] * size)),
            "attack": pa.array([judged.attack]).take(pa.array([0] * size)),
            "target": attack.targets.written(judged.target),
        }
        if attack.points is not None and judged.point is not None:
            columns["point_id"] = attack.points.written(judged.point)
        if judged.cluster is not None:
            columns[UNIT] = pa.array(np.unique(judged.cluster, return_inverse=True)[1])
        columns |= {"member": pa.array(judged.member), "score": pa.array(judged.scores)}
        for name, calls in judged.decisions.items():
            columns[f"{OURS if name in attack.held_out else DECISION}{name}"] = pa.array(calls)
        tables.append(pa.table(columns))
    return pa.concat_tables(tables, promote_options="default").combine_chunks()
