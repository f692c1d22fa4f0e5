"""``orch report``: the report of a finished run, written again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from audits.credentials import mask
from audits.data.catalogue import load
from audits.data.source import parse
from audits.errors import BadInput
from audits.own.permission import is_own
from orchestrator.cli.completing import runs
from orchestrator.cli.finished import SCORED, page_of
from orchestrator.cli.gating import ci_options, clear, write_for_ci
from orchestrator.cli.lines import say
from orchestrator.cli.options import allow_options, colour_option
from orchestrator.engine.kind import Page
from orchestrator.engine.plan.addresses import reached
from orchestrator.engine.plan.reach import require_permission
from orchestrator.engine.plan.sections import Data
from orchestrator.engine.run.console import Terminal
from orchestrator.judgement.gate_result import GateResult, trial_warning
from orchestrator.report.result import read_result

if TYPE_CHECKING:
    from audits.data.dataset import Dataset


@click.command("report")
@click.argument("run", type=click.Path(), shell_complete=runs)
@click.option("--markdown", is_flag=True, help="Print the tables as Markdown instead; nothing is written.")
@ci_options
@colour_option
@allow_options
def command(run: str, markdown: bool, junit: Path | None, summary: Path | None) -> None:
    """Write report.html and figures/ of the folder RUN again, from its result.json and scores.parquet.

    It has thumbnails where the data of the run are on this machine; from an address only if that is allowed.
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
    try:
        return page.images(document, lambda: data_of_run(document))
    except (BadInput, OSError) as error:
        Terminal(json=True).closing(f"without thumbnails: {error}")  # on standard error
        return {}


def data_of_run(document: dict[str, Any]) -> Dataset:
    """Return the data that a result is of; raises BadInput for others, and for an address that may not be reached.

    A plan may be anybody's, and the page goes back to whoever wrote it: pictures of other data of the reader would too.
    """
    name, root = document["plan"]["data"]["name"], document["plan"]["data"].get("root")
    request = parse(name, root)
    places = tuple(reached(Data, document["plan"]["data"], "data."))
    require_permission(places)
    if request.is_elsewhere and not places:
        raise BadInput(f"{mask(name)} is not on this machine")
    place = request.local_path()
    if request.place and not request.is_elsewhere and place.exists() and not (place.is_file() or place.is_dir()):
        raise BadInput(f"{name} is a pipe or a device; data are files and folders")
    known = (document.get("fingerprints") or {}).get("data")
    if known is None and (request.place or root) and not is_own(name):
        raise BadInput(f"{name}: the result has no fingerprint of its data, by which they could be known here")
    found = load(name, root)
    if known is not None and found.contents != known:
        raise BadInput(f"{name} holds other data here than the run was of (their fingerprints differ)")
    return found
