"""The release gate on the command line: its lines, its exit code, and its files for CI."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from audits.errors import BadInput
from orchestrator.cli.finished import headline_of, page_of
from orchestrator.engine.ci.junit import is_junit
from orchestrator.engine.ci.junit import junit as junit_of
from orchestrator.engine.ci.summary import is_summary
from orchestrator.engine.ci.summary import summary as summary_of
from orchestrator.engine.gate import ungated
from orchestrator.engine.gate_result import PASSED, GateResult, trial_warning
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import REPORT_FILE, write_whole

F = TypeVar("F", bound=Callable[..., Any])


def ci_options(function: F) -> F:
    """Add --junit and --summary."""
    file = click.Path(path_type=Path, dir_okay=False)
    for option in (
        click.option("--summary", type=file, metavar="FILE", help="Write a short Markdown summary for a pull request."),
        click.option("--junit", type=file, metavar="FILE", help="Write limits and controls as JUnit XML, for CI."),
    ):
        function = option(function)
    return function


def clear(junit: Path | None, summary: Path | None) -> None:
    """Take away files that the command in hand is to write, so that none of an earlier one is taken for its own.

    Raises BadInput where they cannot be written, are one file, or hold something else than what orch writes there.
    """
    if junit is not None and summary is not None and junit.resolve() == summary.resolve():
        raise BadInput(f"--junit and --summary are one file, {junit}; name two")
    check(junit, summary)
    for file in filter(None, (junit, summary)):
        try:
            file.unlink(missing_ok=True)
            file.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=file.parent):
                pass
        except OSError as error:
            raise BadInput(f"{file} cannot be written: {error.strerror}; name another file") from None


def check(junit: Path | None, summary: Path | None) -> None:
    """Raise BadInput for a file that exists and that orch has not written as what it is to become."""
    for option, file, ours, kind in (
        ("--junit", junit, is_junit, "JUnit file"),
        ("--summary", summary, is_summary, "summary"),
    ):
        if file is None or not file.exists():
            continue
        try:
            held = file.read_bytes() if file.is_file() else None
        except OSError as error:
            raise BadInput(f"{file} cannot be read: {error.strerror}; name another file") from None
        if held is None or (held.strip() and not ours(held)):
            raise BadInput(f"{option} {file}: this exists and is no {kind} of orch; name another file, or remove it")


def write_for_ci(document: Mapping[str, Any], out: Path | None, junit: Path | None, summary: Path | None) -> None:
    """Write the files of a result (the content of result.json), whose page is in ``out``, that are asked for.

    Without a gate all controls are told of, and no limit.
    """
    if junit is None and summary is None:
        return
    check(junit, summary)  # a file of the run itself may have been named
    headline = headline_of(document)
    gate = GateResult.of(document) if "gate" in document else ungated(headline, document)
    if junit is not None:
        write_whole(junit, junit_of(document, gate))
    if summary is not None:
        words = page_of(document).closing_lines(document)
        text = summary_of(document, gate, headline, headline.lines(document), words, link(out, summary))
        write_whole(summary, text.encode())


def link(out: Path | None, summary: Path) -> str:
    """Return where the page is: a link from a file in the same folder or above, else its path."""
    if out is None:
        return "none (no --out)"
    page = out / REPORT_FILE
    try:
        place = page.resolve().relative_to(summary.resolve().parent).as_posix()
    except ValueError:
        return f"`{page}`"
    return f"[{place}](<{place}>)"


def close_gate(terminal: Terminal, document: Mapping[str, Any]) -> None:
    """Print how a result (the content of result.json) stands to its limits; raise Exit with 1 unless all are passed."""
    gate = GateResult.of(document)
    for text in filter(None, (trial_warning(document), *gate.lines())):
        terminal.closing(text)
    if gate.limits and gate.outcome != PASSED:
        raise click.exceptions.Exit(1)
