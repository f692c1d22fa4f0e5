"""The page of judged scores."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from audits.statistics.judged import Judged
from orchestrator.engine.kind import Images
from orchestrator.report.controls import controls_grid
from orchestrator.report.numbers import percent
from orchestrator.report.page import RunPage
from orchestrator.report.result import read_run, run_of
from orchestrator.report.writing import draw, write_page
from orchestrator.scored.files import read_parquet
from orchestrator.scored.layouts.own import KIND, judged_of
from orchestrator.scored.page import figures, grids, words
from orchestrator.scored.rows import ScoreResult


@dataclass(frozen=True)
class ScoredRun:
    """A result with its scores; without them for tables."""

    result: ScoreResult
    found: tuple[Judged, ...] = field(default=(), repr=False)


def read(out: Path) -> ScoredRun:
    """Return the result in a folder; raises BadInput where there is none."""
    return ScoredRun(read_run(out, ScoreResult), tuple(judged_of(read_parquet(out / "scores.parquet"), KIND)))


def fill(run: ScoredRun, out: Path, images: Images) -> Path:
    """Write figures and page into ``out``; return the page's path."""
    result = run.result
    first = {(row.setting, row.attack): row for row in reversed(result.table)}
    shown = [(row.attack, float(row.auc), row.auc.ends, row.above_chance) for row in reversed(first.values())]
    makers = {
        "auc": lambda: figures.areas(shown, result.level),
        "roc": lambda: figures.roc_curves(run.found, result.level),
    }
    return write_page(
        out,
        "orchestrator.scored.page",
        result,
        draw(makers, out / "figures"),
        answer=result.verdict,
        all_controls=controls_grid(result.controls),
        verdict=words.verdict(result),
        glossary=words.GLOSSARY,
        level=percent(result.level, 0),
        files=[each["file"] for each in result.plan["files"]],
        attacks=grids.main_grid(result),
        thresholds=grids.threshold_grid(result),
        decisions=grids.decision_grid(result) if result.decisions else None,
        epsilons=grids.epsilon_grid(result) if result.epsilons else None,
        most_curves=figures.MOST_CURVES,
    )


PAGE = RunPage(
    read=read,
    of=lambda document: ScoredRun(run_of(document, ScoreResult)),
    fill=fill,
    images=lambda document, data: {},
    all_grids=lambda run: grids.all_grids(run.result),
    terminal_grids=lambda run: grids.terminal_grids(run.result),
    lines=lambda run: words.closing_lines(run.result),
    form=lambda document: ScoreResult,
)
