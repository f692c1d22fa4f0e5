"""The page of a kind of audit, as the engine and the command line are handed it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from orchestrator.engine.media import html
from orchestrator.engine.progress import Progress
from orchestrator.judgement.rows import Verdict
from orchestrator.judgement.wording import lines as verdict_lines
from orchestrator.report import selection
from orchestrator.report.fitted import Fitted
from orchestrator.report.grid import Grid
from orchestrator.report.grid_formats import as_csv, as_html, as_markdown
from orchestrator.report.in_progress import in_progress
from orchestrator.report.pictures import Images
from orchestrator.report.result import FinishedRun, read_result
from orchestrator.report.rows import read_row, without_points
from orchestrator.report.trials import remark, trial_grid
from orchestrator.report.writing import write_warnings

if TYPE_CHECKING:
    from audits.data.dataset import Dataset

R = TypeVar("R")


@dataclass(frozen=True)
class RunPage(Generic[R]):
    """The parts of a page that differ between kinds of audits.

    ``read(out)`` returns the finished run in a folder, or raises BadInput; ``of(document)`` that of the content of
    result.json, without scores. ``fill(run, out, images)`` writes figures and page and returns the page's path.
    ``images(document, data)`` returns the pictures that the page shows, by point id; ``data()`` is the data set.
    ``all_grids(run)`` returns the tables of a run, ``terminal_grids(run)`` those for a terminal of 100 columns,
    ``lines(run)`` the lines below them; ``form(document)`` the rows that result.json is read as.
    """

    read: Callable[[Path], R]
    of: Callable[[Mapping[str, Any]], R]
    fill: Callable[[R, Path, Images], Path]
    images: Callable[[Mapping[str, Any], Callable[[], Dataset]], Images]
    all_grids: Callable[[R], list[Grid]]
    terminal_grids: Callable[[R], list[Grid]]
    lines: Callable[[R], list[str]]
    form: Callable[[Mapping[str, Any]], type[FinishedRun]] = field(kw_only=True)

    def write(self, out: Path, images: Images | None = None) -> Path:
        """Write ``figures/*.svg|png`` and ``report.html`` under ``out`` from its files; return the page's path.

        ``images``: pixels of points by id. Same run, same bytes. Raises BadInput for a run that is not finished.
        """
        return self.fill(self.read(out), out, images or {})

    def without_pictures(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result without pictures of points: those are the rows of fields ``…_pictures``."""
        emptied: dict[str, list[Any]] = {name: [] for name in document if name.endswith("_pictures")}
        return {**document, **emptied, "pictures": False}

    def aggregates(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return a result without rows, scores and pictures of single points, which says so."""
        bare = self.without_pictures(document)
        return {**without_points(self.form(document), bare), "aggregate_only": True}

    def warn(self, out: Path, warnings: Sequence[str]) -> None:
        """Put ``warnings`` into the page in ``out``, in place of those that it has."""
        write_warnings(out, warnings)

    def in_progress(self, progress: Progress) -> str:
        """Return the page of a run that is not finished, which is the same for all kinds."""
        return in_progress(progress)

    def grids(self, out: Path) -> list[Grid]:
        """Return all tables of the run in ``out``: of one that chose its setting the choice first."""
        document = read_result(out)
        return [*selection.grids(selection.chosen_of(document)), *self.all_grids(self.read(out)), *trials_of(document)]

    def markdown(self, out: Path) -> str:
        """Return the tables of the run in ``out`` as Markdown."""
        return "\n\n".join(map(as_markdown, self.grids(out))) + "\n"

    def csv(self, out: Path) -> dict[str, str]:
        """Return the tables of the run in ``out`` as CSV, by name."""
        return {grid.file: as_csv(grid) for grid in self.grids(out)}

    def tables(self, document: Mapping[str, Any]) -> list[Fitted]:
        """Return the tables of a result (the content of result.json) for a terminal of any width."""
        return [Fitted(grid) for grid in [*self.shown(document), *trials_of(document)]]

    def shown(self, document: Mapping[str, Any]) -> list[Grid]:
        """Return the tables of a result for a terminal: of one that chose its setting the choice last, read first."""
        chosen = selection.chosen_of(document)
        return [*self.terminal_grids(self.of(document)), *([selection.judged_grid(chosen)] if chosen else [])]

    def html_tables(self, document: Mapping[str, Any]) -> list[str]:
        """Return the tables of a result that a terminal shows as HTML elements, for a notebook."""
        return [f"<h4>{html(grid.title)}</h4>{as_html(grid)}" for grid in self.shown(document)]

    def closing_lines(self, document: Mapping[str, Any]) -> list[str]:
        """Return the last lines on a terminal: what a reader of the tables must know, then the verdict."""
        search, run = document.get("search"), self.of(document)
        found = document.get("verdict")
        said = verdict_lines(read_row(Verdict, found, "verdict")) if found else []
        chosen = selection.lines(selection.chosen_of(document))
        return [*chosen, *self.lines(run), *([remark(search)] if search else []), *said]


def trials_of(document: Mapping[str, Any]) -> list[Grid]:
    """Return the table of the trials of a search; none for other results."""
    return [trial_grid(document["search"])] if document.get("search") else []
