"""``orch sweep``: a named experiment over one shared population."""

from __future__ import annotations

import json
from pathlib import Path

import click

from audits.errors import BadInput
from orchestrator.cli.options import PLAN_HELP, plan_options, planned, run_options
from orchestrator.cli.session import Session
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import PLAN_FILE, claim_folder
from orchestrator.engine.run.run import run_sweep, run_tuning
from orchestrator.engine.run.summary import show_result
from orchestrator.kinds import kind_named
from tune_spaces import SWEEPS


@click.command("sweep", epilog=PLAN_HELP)
@click.argument("name")
@plan_options
@run_options
@click.option("--resume", is_flag=True, help="Go on with the sweep that --out holds, by the plan that lies there.")
@click.pass_obj
def command(
    session: Session,
    name: str,
    source: str | None,
    overrides: tuple[str, ...],
    workers: str | None,
    store: str | None,
    out: str | None,
    as_json: bool,
    rebuild: bool,
    force: bool,
    resume: bool,
) -> None:
    """Run the sweep NAME (`orch ls sweeps`) and write its tables, figures and report.

    Models are trained once and shared by all settings; whatever the store has is used again, so the same command
    goes on where an interrupted one stopped.
    """
    sweep = SWEEPS[name]

    folder = Path(out or f"runs/{name}")
    if resume:
        if source or overrides:
            raise BadInput("--resume goes on with the plan of the run; leave out PLAN and --set, or leave out --resume")
        if not (folder / PLAN_FILE).is_file():
            raise BadInput(f"--resume: {folder} holds no run to go on with; start it without --resume")
        source = str(folder / PLAN_FILE)
    plan = planned(source or sweep.base, overrides, workers, store)
    kind = kind_named(plan.kind)
    session.log = claim_folder(folder, plan, force=force)
    terminal = Terminal(session.log, json=as_json)
    for text in (*plan.notes, *(f"warning: {line}" for line in plan.warnings)):
        terminal.line(text)
    if sweep.measures == "utility" and kind.tuning is not None:
        document = run_tuning(kind, sweep, plan, folder, terminal, rebuild=rebuild)
        kind.tuning.show(terminal, document, folder)
    else:
        document = run_sweep(kind, sweep, plan, folder, terminal, rebuild=rebuild, force=force).to_json()
        show_result(terminal, kind, document, folder)
    if as_json:
        click.echo(json.dumps(document))
