"""A finished run as Python and notebooks see it: numbers, tables, figures, and how it looks in a cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.data.bounded import table_within
from audits.data.regular import content_of
from audits.errors import BadInput, did_you_mean
from audits.own.permission import asking, said_in_the_environment
from orchestrator.engine.kind import Kind
from orchestrator.engine.media import html, svg, terminal
from orchestrator.engine.run.output_folder import REPORT_FILE, RESULT_FILE
from orchestrator.judgement.gate import failures, gates_of
from orchestrator.kinds import kind_named, plan_from
from orchestrator.report.result import read_result

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

SCORES_FILE = "scores.parquet"
LOOK = """<style>
.orch td, .orch th { text-align: left; padding: .1em .7em }
.orch .ci { opacity: .7 }
.orch .above { font-weight: 600 }
</style>"""


@dataclass(frozen=True)
class Figure:
    """One figure of a report; a notebook shows it."""

    file: Path

    @property
    def name(self) -> str:
        """Its name in the report."""
        return self.file.stem

    def _repr_svg_(self) -> str:
        return svg(content_of(self.file).decode())


class Report:
    """A finished audit or sweep: what lies in its folder.

    ``folder`` holds result.json, scores.parquet (unless the run kept aggregates only), report.html and figures/. Raises
    BadInput for a folder without a result. Nothing is computed again.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not (self.folder / RESULT_FILE).is_file():
            raise BadInput(f"{self.folder} has no {RESULT_FILE}; give the folder of a finished run")
        self.document: dict[str, Any] = read_result(self.folder)
        """The content of result.json (docs/reference/result.md)."""

    def __repr__(self) -> str:
        return f"Report({str(self.folder)!r}): {terminal(' '.join(self.lines))}"

    @property
    def name(self) -> str:
        """What ran: ``apollo-audit``, or the name of a sweep."""
        return str(self.document["name"])

    @property
    def page(self) -> Path:
        """The HTML page."""
        return self.folder / REPORT_FILE

    @property
    def warnings(self) -> list[str]:
        """What a reader must know."""
        return list(self.document["warnings"])

    @property
    def table(self) -> list[dict[str, Any]]:
        """The rows of the main table with all their numbers: ``table`` of result.json."""
        return list(self.document["table"])

    @cached_property
    def scores(self) -> pa.Table:
        """The scores, one row for each point, model and so on (docs/reference/result.md).

        Raises BadInput for a run that kept aggregates only, and for a file that takes more than half of the memory.
        """
        if self.document.get("aggregate_only"):
            raise BadInput(f"{self.folder} has no scores: it was run with --aggregate-only; its tables are whole")
        return table_within(self.folder / SCORES_FILE, str(self.folder / SCORES_FILE))

    @property
    def lines(self) -> list[str]:
        """The sentences that the command line prints below its tables."""
        return self._kind.open_page().closing_lines(self.document)

    def to_pandas(self) -> pd.DataFrame:
        """Return the main table as a data frame; nested numbers have columns such as ``auc.low``."""
        import pandas as pd

        return pd.json_normalize(self.table)

    @property
    def figures(self) -> dict[str, Figure]:
        """The figures by name."""
        return {file.stem: Figure(file) for file in sorted((self.folder / "figures").glob("*.svg"))}

    def figure(self, name: str | None = None) -> Figure:
        """Return a figure by name, the first one without; raises BadInput for one that the report does not have."""
        found = self.figures
        wanted = next(iter(found), "") if name is None else name
        if wanted not in found:
            known = ", ".join(found) or "none"
            raise BadInput(f"no figure {wanted!r}{did_you_mean(wanted, found)}; this report has: {known}")
        return found[wanted]

    def failures(self, limits: Sequence[str] | Mapping[str, float]) -> list[str]:
        """Return in words which limits the result fails, none if it passes: the gate (docs/reference/result.md).

        ``limits``: as for ``--fail-above``, ``["scrub.apollo.auc=0.6"]`` or ``{"scrub.apollo.auc": 0.6}``. Raises
        BadInput where the result names users' code, unless ``ORCH_ALLOW_CODE=1`` allows it: anybody may have made it.
        """
        texts = [f"{name}={value}" for name, value in limits.items()] if isinstance(limits, Mapping) else limits
        with asking(said_in_the_environment):
            plan = plan_from(self.document["plan"])
        headline = self._kind.headline
        return failures(gates_of(tuple(texts), headline, plan), headline, plan, self.document)

    def _repr_html_(self) -> str:
        """Return the report's tables and sentences for a notebook's cell."""
        parts = [LOOK, f'<div class="orch"><h3>{html(self.name)}</h3>']
        parts += [f"<p>{html(line)}</p>" for line in self.lines]
        parts += self._kind.open_page().html_tables(self.document)
        parts += [f"<p>warning: {html(text)}</p>" for text in self.warnings]
        return "\n".join([*parts, f"<p>page: {html(str(self.page))}</p></div>"])

    @property
    def _kind(self) -> Kind:
        return kind_named(str(self.document["kind"]))
