"""Print a finished run on the terminal: its tables, its warnings, where its report is, and last its verdict."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.engine.kind import Kind
from orchestrator.engine.run.console import Terminal


def show_result(terminal: Terminal, kind: Kind, document: Mapping[str, Any], out: Path) -> None:
    """Print a result (the content of result.json), where its report and its tracking are, and its verdict."""
    page = kind.open_page()
    for table in page.tables(document):
        terminal.table(table)
    for text in document["warnings"]:
        terminal.line(f"warning: {text}")
    if terminal.terse and (count := len(document["warnings"])):
        terminal.closing(f"{count} warning{'s' if count > 1 else ''}, told in the report")
    terminal.closing(f"report: {out / 'report.html'}")
    if tracked := document.get("tracking"):
        terminal.line(f"tracking: {page_of(tracked)}")
    for line in page.closing_lines(document):
        terminal.closing(line)


def page_of(tracked: Mapping[str, Any]) -> str:
    """Return where a tracked run can be looked at: at its server, or at one to start on the database."""
    uri, page = tracked["uri"], tracked["page"]
    if uri.startswith("http"):
        return f"{uri.rstrip('/')}/{page}"
    return f"mlflow ui --backend-store-uri {uri}, then http://127.0.0.1:5000/{page}"
