"""``orch report``: the report of a finished run, written again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from audits.data.catalogue import load
from audits.errors import BadInput
from orchestrator.cli.completing import runs
from orchestrator.cli.finished import SCORED, page_of
from orchestrator.cli.gating import ci_options, clear, write_for_ci
from orchestrator.cli.lines import say
from orchestrator.cli.options import allow_code_option, colour_option
from orchestrator.engine.gate_result import GateResult, trial_warning
from orchestrator.engine.kind import Page
from orchestrator.engine.run.console import Terminal
from orchestrator.report.result import read_result


@click.command("report")
@click.argument("run", type=click.Path(), shell_complete=runs)
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown instead; nothing is written.")
@ci_options
@colour_option
@allow_code_option
def command(run: str, markdown: bool, junit: Path | None, summary: Path | None) -> None:
    """Write report.html and figures/ of the folder RUN again, from its result.json and scores.parquet.

    With limits (`orch audit --fail-above`) their outcome is printed again; the exit code is 0 all the same. The page of
    a run with --aggregate-only cannot be written again, since it kept no scores.
    """
    folder = Path(run)
    if not (folder / "result.json").is_file():
        raise BadInput(f"{folder} has no result.json; give the --out folder of a finished audit or sweep")
    document = read_result(folder)
    redrawn = not (markdown or junit or summary)
    if document.get("aggregate_only") and redrawn:
        raise BadInput(
            f"{folder}: the page cannot be drawn again, since the run kept no scores (--aggregate-only); open "
            f"{folder / 'report.html'} as the run left it, or ask for --markdown, --junit or --summary"
        )
    clear(junit, summary)
    page = page_of(document)
    write_for_ci(document, folder, junit, summary)
    if markdown:
        say(page.markdown(folder), nl=False)
    if markdown or document.get("aggregate_only"):
        return
    shown = document["kind"] != SCORED and document.get("pictures") is not False
    page.write(folder, thumbnails(page, document) if shown else None)
    terminal = Terminal()
    terminal.closing(f"wrote {folder / 'report.html'}")
    for text in filter(None, (trial_warning(document), *GateResult.of(document).lines())):
        terminal.closing(text)


def thumbnails(page: Page, document: dict[str, Any]) -> Any:
    """Return the images of the points that the page lists, by id; none where the data are not here."""
    data = document["plan"]["data"]
    try:
        return page.images(document, lambda: load(data["name"], data.get("root")))
    except BadInput as error:
        Terminal(json=True).closing(f"without thumbnails: {error}")  # on standard error
        return {}
