"""The last words of a run on the terminal: its tables, its warnings, and where to read on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.kinds import audit_kind

if TYPE_CHECKING:
    from orchestrator.console import Terminal


def show_result(terminal: Terminal, document: Mapping[str, Any], out: Path) -> None:
    """Print a result (the content of result.json) and where its report and its tracking are."""
    kind = audit_kind(document["kind"])
    for table in kind.tables(document):
        terminal.table(table)
    for line in kind.closing_lines(document):
        terminal.line(line)
    for text in document["warnings"]:
        terminal.line(f"warning: {text}")
    terminal.line(f"report: {out / 'report.html'}")
    if tracked := document.get("tracking"):
        terminal.line(f"tracking: experiment {tracked['experiment']} of {tracked['uri']}")
