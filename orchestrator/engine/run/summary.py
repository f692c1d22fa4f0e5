"""Print a finished run on the terminal: its tables, its warnings, where its report is, and last its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from orchestrator.engine.kind import Kind
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.store.inventory import size_text


def show_result(terminal: Terminal, kind: Kind, document: Mapping[str, Any], out: Path) -> None:
    """Print a result (the content of result.json), where its report and its tracking are, and its verdict."""
    page = kind.open_page()
    for table in page.tables(document):
        terminal.table(table)
    for text in document["warnings"]:
        terminal.line(f"warning: {text}")
    if terminal.terse and (count := len(document["warnings"])):
        terminal.closing(f"{count} warning{'s' if count > 1 else ''}, listed in the report")
    terminal.closing(f"report: {out / 'report.html'}")
    if tracked := document.get("tracking"):
        terminal.with_command(f"tracking: {page_of(tracked)}")
        if logged := tracked.get("models"):
            terminal.with_command(f"models: {serving(tracked['uri'], logged)}")
    for line in page.closing_lines(document):
        terminal.closing(line)


def serving(uri: str, logged: Mapping[str, Any]) -> str:
    """Return how many models MLflow has of a run, and the command that serves the first of them."""
    if not logged["uris"]:
        return "none logged: of the target only answers are known"
    name, model = next(iter(logged["uris"].items()))
    new = f"{logged['new']} new, {size_text(logged['bytes'])}" if logged["new"] else "none new"
    command = (
        f"MLFLOW_TRACKING_URI={quote(uri)} mlflow models serve -m {model} --env-manager local -h 127.0.0.1 -p 5001"
    )
    return f"{len(logged['uris'])} in MLflow ({new}); {name}: {command}"


def page_of(tracked: Mapping[str, Any]) -> str:
    """Return where a tracked run can be looked at: at its server, or at one to start on the database."""
    uri, page = tracked["uri"], tracked["page"]
    if uri.startswith("http"):
        return f"{uri.rstrip('/')}/{page}"
    return f"mlflow ui --backend-store-uri {quote(uri)}, then http://127.0.0.1:5000/{page}"
