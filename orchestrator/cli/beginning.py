"""Where audit, sweep and tune begin alike: their folder is claimed, and the notes of their plan are told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.session import Session
from orchestrator.engine.given_files import with_digests
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import (
    LOG_FILE,
    Claim,
    Goal,
    claim_folder,
    goal_left,
    keep_run,
    keep_sweep,
    refuse_other_goal,
    refuse_other_sweep,
)
from orchestrator.engine.run.search_checks import head_of, samples_of
from orchestrator.engine.run.search_journal import JOURNAL_FILE, Journal

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
) -> Terminal:
    """Claim ``folder`` for a run of ``plan``, keep ``sweep`` and ``goal`` there, and return the terminal.

    The notes of the plan are told. Raises BadInput for the folder of another run, unless ``force``; that folder is
    left as it was.
    """
    terminal, claim = begin_sweep(
        session, folder, plan, as_json=as_json, force=force, terse=terse, sweep=sweep, goal=goal
    )
    if claim is not None:
        claim()
    return terminal


def begin_sweep(
    session: Session,
    folder: Path,
    plan: BasePlan,
    *,
    as_json: bool,
    force: bool,
    terse: bool,
    sweep: Sweep | None,
    goal: Goal | None = None,
) -> tuple[Terminal, Claim | None]:
    """Do as ``begin``; but where a search lies in ``folder``, return the claim instead of making it.

    The search may have been of other code or data, which shows when it looks at its journal; it makes the claim then.
    """
    searches = sweep is not None and sweep.search is not None and sweep.search.adaptive
    if not force:
        refuse_other_goal(folder, goal)
    if sweep is not None and not force:
        refuse_other_sweep(folder, sweep)
        if sweep.search is not None and sweep.search.adaptive:
            head = head_of(sweep.search, with_digests(plan))
            Journal(folder / JOURNAL_FILE, head).check(samples_of(sweep.search))

    def claim() -> None:
        claim_folder(folder, plan, force=force)
        if sweep is not None:
            keep_sweep(folder, sweep)
        if sweep is not None or goal_left(folder) is not None:
            keep_run(folder, sweep.name if sweep else "", goal)

    waits = searches and (folder / JOURNAL_FILE).is_file()
    if not waits:
        claim()
    session.log = folder / LOG_FILE
    terminal = Terminal(session.log, json=as_json, terse=terse)
    tell_notes(terminal, plan)
    return terminal, claim if waits else None


def tell_notes(terminal: Terminal, plan: BasePlan) -> None:
    """Print what a plan notes and warns of."""
    for text in (*plan.notes, *(f"warning: {line}" for line in plan.warnings)):
        terminal.line(text)
