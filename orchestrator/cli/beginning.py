"""The common beginning of audit, sweep and tune: their folder is held, and the notes of their plan are told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from orchestrator.cli.session import Session
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import LOG_FILE, Claim, Goal
from orchestrator.engine.run.taking import hold_folder, tell_notes

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
    goal: Goal | None = None,
) -> tuple[Terminal, Claim]:
    """Hold ``folder`` for a run of ``plan``; return the terminal, and what claims it, with ``sweep`` and ``goal``.

    The notes of the plan are told. Raises BadInput for the folder of another run, unless ``force``; that folder is
    left as it was.
    """
    context = click.get_current_context()
    claim = context.with_resource(hold_folder(folder, plan, force=force, sweep=sweep, goal=goal))
    session.log = folder / LOG_FILE
    terminal = Terminal(session.log, json=as_json, terse=terse)
    tell_notes(terminal, plan)
    return terminal, claim
