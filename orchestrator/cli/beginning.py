"""Where audit, sweep and tune begin alike: their folder is claimed, and the notes of their plan are told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.session import Session
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import claim_folder, keep_sweep, refuse_other_sweep

if TYPE_CHECKING:
    from orchestrator.engine.plan.base import BasePlan
    from tune_spaces.registry import Sweep


def begin(
    session: Session,
    folder: Path,
    plan: BasePlan,
    *,
    as_json: bool,
    force: bool,
    terse: bool = False,
    sweep: Sweep | None = None,
) -> Terminal:
    """Claim ``folder`` for a run of ``plan``, keep ``sweep`` there, and return the terminal, which has told the notes.

    Raises BadInput for the folder of another run, unless ``force``.
    """
    if sweep is not None and not force:
        refuse_other_sweep(folder, sweep)
    session.log = claim_folder(folder, plan, force=force)
    if sweep is not None:
        keep_sweep(folder, sweep)
    terminal = Terminal(session.log, json=as_json, terse=terse)
    tell_notes(terminal, plan)
    return terminal


def tell_notes(terminal: Terminal, plan: BasePlan) -> None:
    """Print what a plan notes and warns of."""
    for text in (*plan.notes, *(f"warning: {line}" for line in plan.warnings)):
        terminal.line(text)
