"""``orch tune``: settings of an attack, chosen without asking a target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from audits.errors import BadInput
from orchestrator.cli.beginning import begin
from orchestrator.cli.completing import kinds, sweeps
from orchestrator.cli.lines import say
from orchestrator.cli.options import PLAN_HELP, plan_options, planned, run_options
from orchestrator.cli.session import Session
from orchestrator.cli.sweeps import choice_options, chosen_among, goal
from orchestrator.engine.run.choice import choice_of, selection_of
from orchestrator.engine.run.output_folder import usual_folder
from orchestrator.engine.run.selecting import run_selection
from orchestrator.engine.run.summary import show_result
from orchestrator.kinds import kind_named

if TYPE_CHECKING:
    from orchestrator.engine.plan.base import BasePlan
    from tune_spaces.registry import Sweep


@click.command("tune", epilog=PLAN_HELP)
@click.argument("kind", shell_complete=kinds)
@click.argument("name", metavar="[NAME|FILE]", required=False, shell_complete=sweeps)
@plan_options
@choice_options
@run_options
@click.pass_obj
def command(
    session: Session,
    /,
    kind: str,
    name: str | None,
    source: str | None,
    overrides: tuple[str, ...],
    workers: str | None,
    store: str | None,
    out: str | None,
    as_json: bool,
    no_pictures: bool,
    aggregate_only: bool,
    rebuild: bool,
    force: bool,
    terse: bool,
    **asked: Any,
) -> None:
    """Choose a setting of a sweep for the attack of --metric, then audit the targets once with it.

    NAME, FILE and --vary are those of orch sweep. Its settings and the plan's own are compared by what the attack finds
    of shadows that play the target: their truth is known, and no target is asked. The best is frozen in tuned.yaml, and
    the targets are audited with it and with the plan's own setting. So what is found of them may be quoted, unlike that
    of the best of a sweep.
    """
    audit = kind_named(kind)
    selection = selection_of(audit)
    sweep, source = chosen_among(name, source, asked)
    plan = planned(source or sweep.base, overrides, workers, store, sweep=sweep)
    require_kind(plan, kind)
    plan = selection.own(plan)
    choice = choice_of(audit, sweep, plan, *goal(sweep, asked))
    folder = Path(out) if out else folder_of(sweep)
    by = (choice.metric, choice.mode)
    terminal, claim = begin(session, folder, plan, as_json=as_json, force=force, terse=terse, sweep=sweep, goal=by)
    kept = {"pictures": not no_pictures, "aggregate_only": aggregate_only}
    found = run_selection(audit, choice, plan, folder, terminal, rebuild=rebuild, claim=claim, **kept)
    document = found.to_json()
    show_result(terminal, audit, document, folder)
    if as_json:
        say(json.dumps(document))


def require_kind(plan: BasePlan, kind: str) -> None:
    """Raise BadInput for a plan of another audit than the one to tune."""
    if plan.kind != kind:
        raise BadInput(f"audit.kind is {plan.kind!r} in the plan, but the audit to tune is {kind!r}")


def folder_of(sweep: Sweep) -> Path:
    """Return the folder of a tuned sweep where none is named."""
    return usual_folder(f"tune-{sweep.name}")
