"""The release gate on the command line: its lines, and its exit code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from orchestrator.engine.gate_result import PASSED, GateResult
from orchestrator.engine.run.console import Terminal


def close_gate(terminal: Terminal, document: Mapping[str, Any]) -> None:
    """Print how a result (the content of result.json) stands to its limits; raise Exit with 1 unless all are passed."""
    gate = GateResult.of(document)
    for text in gate.lines():
        terminal.line(text)
    if gate.limits and gate.outcome != PASSED:
        raise click.exceptions.Exit(1)
