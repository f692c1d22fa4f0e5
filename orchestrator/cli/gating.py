"""The release gate on the command line: its lines, its exit code, and its files for CI."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import click

from audits.errors import BadInput
from audits.writing import make_folder, write_whole
from orchestrator.cli.finished import headline_of, page_of
from orchestrator.engine.ci.junit import is_junit, junit_of_error
from orchestrator.engine.ci.junit import junit as junit_of
from orchestrator.engine.ci.summary import is_summary, summary_of_error
from orchestrator.engine.ci.summary import summary as summary_of
from orchestrator.engine.media import markdown
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import REPORT_FILE, place_of
from orchestrator.judgement.gate import ungated
from orchestrator.judgement.gate_result import PASSED, GateResult, trial_warning

F = TypeVar("F", bound=Callable[..., Any])


STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
"""The variable in which GitHub names the summary of a step, to which all of its commands append."""


def ci_options(function: F) -> F:
    """Add --junit and --summary."""
    file = click.Path(path_type=Path, dir_okay=False)
    for name, text in (
        (
            "--summary",
            "Write a short Markdown summary for a pull request; what $GITHUB_STEP_SUMMARY names is appended to.",
        ),
        ("--junit", "Write limits and controls as JUnit XML, for CI."),
    ):
        function = click.option(name, type=file, metavar="FILE", callback=not_empty, help=text)(function)
    return function


def not_empty(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """Return where a file is written; raises BadInput for an empty name, as of a shell's unset variable."""
    if value is not None and not value.name:
        raise BadInput(f"{parameter.opts[0]} is empty; give a file, or leave it out")
    return None if value is None else place_of(value)


def clear(junit: Path | None, summary: Path | None) -> None:
    """Take away files that the command in hand is to write, so that none of an earlier one is taken for its own.

    What is appended to stays. Raises BadInput where they cannot be written, are one file, or hold something else than
    what orch writes there.
    """
    require_two(junit, summary)
    check(junit, summary)
    for file in filter(None, (junit, summary)):
        try:
            if is_appended(file):
                with file.open("ab"):
                    continue
            file.unlink(missing_ok=True)
            make_folder(file.parent)
            with tempfile.TemporaryFile(dir=file.parent):
                pass
        except OSError as error:
            raise BadInput(f"{file} cannot be written: {error.strerror}; name another file") from None


def require_two(junit: Path | None, summary: Path | None) -> None:
    """Raise BadInput where both files are one."""
    if junit is not None and summary is not None and junit.resolve() == summary.resolve():
        raise BadInput(f"--junit and --summary are one file, {junit}; name two")


def is_appended(file: Path) -> bool:
    """Say whether a summary is that of a step of GitHub's, which holds what other commands have written."""
    step = os.environ.get(STEP_SUMMARY)
    return bool(step) and file.resolve() == Path(str(step)).resolve()


def check(junit: Path | None, summary: Path | None) -> None:
    """Raise BadInput for a file that exists and that orch has not written as what it is to become."""
    if summary is not None and is_appended(summary):
        summary = None
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


def leave_error(command: str, message: str, code: int, junit: Path | None, summary: Path | None) -> None:
    """Write the files of a ``command`` that ended with ``message`` and an exit ``code``.

    The error is that of the command: a file that cannot be written, or must not be, is left as it is.
    """
    with suppress(BadInput):
        require_two(junit, summary)
        with suppress(BadInput, OSError):
            check(junit, None)
            if junit is not None:
                write(junit, junit_of_error(command, message, code))
        with suppress(BadInput, OSError):
            check(None, summary)
            if summary is not None:
                write(summary, summary_of_error(command, message, code).encode())


def write(file: Path, data: bytes) -> None:
    """Write a file for CI whole, or append to the summary of a step of GitHub's, a blank line between."""
    make_folder(file.parent)
    if not is_appended(file):
        write_whole(file, data)
        return
    with file.open("a+b") as step:
        step.seek(0)
        held = step.read().rstrip(b"\r\n")
        between = b"\n\n" if held else b""
        step.write(between + data)


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
        write(junit, junit_of(document, gate))
    if summary is not None:
        words = page_of(document).closing_lines(document)
        text = summary_of(document, gate, headline, headline.lines(document), words, link(out, summary))
        write(summary, text.encode())


def link(out: Path | None, summary: Path) -> str:
    """Return where the page is: a link from a file in the same folder or above, else its path."""
    if out is None:
        return "none (no --out)"
    page = out / REPORT_FILE
    try:
        place = page.resolve().relative_to(summary.resolve().parent).as_posix()
    except ValueError:
        return markdown(str(page))
    return f"[{markdown(place)}](<{quote(place)}>)"


def close_gate(terminal: Terminal, document: Mapping[str, Any]) -> None:
    """Print how a result (the content of result.json) stands to its limits; raise Exit with 1 unless all are passed."""
    gate = GateResult.of(document)
    for text in filter(None, (trial_warning(document), *gate.lines())):
        terminal.closing(text)
    if gate.limits and gate.outcome != PASSED:
        raise click.exceptions.Exit(1)
