"""Compare finished runs and write compare.json, figure and page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from audits.errors import BadInput
from audits.writing import write_whole
from orchestrator.compared.differences import compared
from orchestrator.compared.matching import parse_matches
from orchestrator.compared.page import page
from orchestrator.compared.rows import CompareResult, SideRow
from orchestrator.compared.sides import sides_of
from orchestrator.compared.significance import covers
from orchestrator.compared.verdict import answer
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import make_ready, refuse_strangers
from orchestrator.engine.run.result_head import versions
from orchestrator.report.fitted import Fitted
from orchestrator.report.result import SettingRow

RESULT = "compare.json"


def compare(
    folders: Sequence[Path],
    *,
    settings: Sequence[str],
    metrics: Sequence[str],
    attacks: Sequence[str],
    level: float,
    all_pairs: bool,
    out: Path | None,
    terminal: Terminal,
    command: str,
    matches: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the content of compare.json; written to ``out`` with the page, where there is one."""
    if not 0.0 < level < 1.0:
        raise BadInput(f"--level {level:g} must lie between 0 and 1")
    if out is not None and ((out.exists() and not out.is_dir()) or (out / "result.json").exists()):
        raise BadInput(f"--out {out} is a file or holds a run; give a folder of its own")
    if out is not None:
        refuse_strangers(out, mark=RESULT, way="choose another --out")
    names = parse_matches(matches)
    sides = sides_of(folders, settings)
    pairs, rows = compared(sides, metrics=metrics, attacks=attacks, level=level, all_pairs=all_pairs, matches=names)
    options = {
        "settings": list(settings), "metrics": list(metrics), "attacks": list(attacks), "all_pairs": all_pairs,
        "matches": list(matches),
    }  # fmt: skip
    result = CompareResult(
        name="compare",
        kind=CompareResult.KIND,
        seed=sides[0].seed,
        settings=(SettingRow(setting="base", overrides={}),),
        plan={"runs": [str(side.folder) for side in sides], "options": options},
        versions=versions(),
        sides=tuple(
            SideRow(label=side.label, folder=str(side.folder), setting=side.setting, kind=side.kind, seed=side.seed)
            for side in sides
        ),
        pairs=tuple(pairs),
        table=tuple(rows),
        covers=covers(rows, level, elsewhere=sides[0].data.by_names),
        level=level,
        command=command,
        question=sides[0].kind,
    )
    result = replace(result, verdict=answer(result))
    document = result.document()
    if out is not None:
        make_ready(out)
        write_whole(out / RESULT, json.dumps(document, indent=1).encode(), private=True)
        page.write(result, out)
    for line in page.opening_lines(result):
        terminal.closing(line)
    terminal.table(Fitted(page.main_grid(result)))
    for line in page.closing_lines(result):
        terminal.closing(line)
    if out is not None:
        terminal.closing(f"report: {out / 'report.html'}")
    return document
