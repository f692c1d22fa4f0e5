"""``orch tune``: settings of an attack, chosen without asking a target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click

from audits.errors import BadInput
from orchestrator.cli.options import PLAN_HELP, plan_options, planned, run_options
from orchestrator.cli.session import Session
from orchestrator.engine.run.choice import choice_of, selection_of
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import claim_folder
from orchestrator.engine.run.selecting import run_selection
from orchestrator.engine.run.summary import show_result
from orchestrator.kinds import kind_named
from tune_spaces import SWEEPS
from tune_spaces.registry import Sweep


@click.command("tune", epilog=PLAN_HELP)
@click.argument("kind")
@click.argument("name", metavar="SWEEP")
@plan_options
@run_options
@click.option("--metric", metavar="UNLEARNER.ATTACK.auc", help="The number to choose by, such as scrub.apollo.auc.")
@click.option("--mode", type=click.Choice(["max", "min"]), default="max", show_default=True, help="Which is best.")
@click.pass_obj
def command(
    session: Session,
    kind: str,
    name: str,
    source: str | None,
    overrides: tuple[str, ...],
    workers: str | None,
    store: str | None,
    out: str | None,
    as_json: bool,
    rebuild: bool,
    force: bool,
    metric: str | None,
    mode: Literal["max", "min"],
) -> None:
    """Choose a setting of SWEEP for the attack of --metric, then audit the targets once with it.

    The settings of SWEEP and the plan's own are compared by what the attack finds of shadows that play the target:
    their truth is known, and no target is asked. The best is frozen in tuned.yaml, and the targets are audited with it
    and with the plan's own setting. So what is found of them may be quoted, unlike that of the best of a sweep.
    """
    audit = kind_named(kind)
    selection_of(audit)
    sweep = sweep_named(name)
    plan = planned(source or sweep.base, overrides, workers, store)
    if plan.kind != kind:
        raise BadInput(f"audit.kind is {plan.kind!r} in the plan, but the audit to tune is {kind!r}")
    choice = choice_of(audit, sweep, plan, metric, mode)
    folder = Path(out or f"runs/tune-{name}")
    session.log = claim_folder(folder, plan, force=force)
    terminal = Terminal(session.log, json=as_json)
    for text in (*plan.notes, *(f"warning: {line}" for line in plan.warnings)):
        terminal.line(text)
    document = run_selection(audit, choice, plan, folder, terminal, rebuild=rebuild).to_json()
    show_result(terminal, audit, document, folder)
    if as_json:
        click.echo(json.dumps(document))


def sweep_named(name: str) -> Sweep:
    """Return the sweep that the command line names."""
    return SWEEPS[name]
