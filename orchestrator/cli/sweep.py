"""``orch sweep``: an experiment over one shared population, by its name, in a file or on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from audits.errors import BadInput
from orchestrator.cli.beginning import begin
from orchestrator.cli.completing import sweeps
from orchestrator.cli.lines import say
from orchestrator.cli.options import PLAN_HELP, log_models_option, plan_options, planned, run_options
from orchestrator.cli.session import Session
from orchestrator.cli.sweeps import chosen, left_in, search_options
from orchestrator.engine.run.output_folder import PLAN_FILE, usual_folder
from orchestrator.engine.run.run import Result, run_sweep, run_tuning
from orchestrator.engine.run.summary import show_result
from orchestrator.kinds import kind_named


@click.command("sweep", epilog=PLAN_HELP)
@click.argument("name", metavar="[NAME|FILE]", required=False, shell_complete=sweeps)
@plan_options
@search_options
@run_options
@log_models_option
@click.option("--resume", is_flag=True, help="Go on with the sweep that --out holds, by the plan that lies there.")
@click.pass_obj
def command(
    session: Session,
    /,
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
    log_models: str | None,
    resume: bool,
    **asked: Any,
) -> None:
    """Run a sweep and write its tables, figures and report.

    NAME is that of a shipped sweep (`orch ls sweeps`), FILE a sweep file of yours (YAML, see docs/how-to/sweeps.md);
    with --vary neither is given: orch sweep --vary audit.search.epsilon=0.02,0.05,0.1 [PLAN].

    Models are trained once and shared by all settings; whatever the store has is used again, so the same command
    goes on where an interrupted one stopped.
    """
    if resume:
        if source or overrides or asked["vary"]:
            raise BadInput(
                "--resume goes on with the plan of the run; leave out PLAN, --set and --vary, or leave out --resume"
            )
        folder, sweep = left_in(name, out, asked)
        source = str(folder / PLAN_FILE)
    else:
        sweep, source = chosen(name, source, asked)
        folder = Path(out) if out else usual_folder(sweep.name)
    plan = planned(source or sweep.base, overrides, workers, store, sweep=sweep, log_models=log_models)
    kind = kind_named(plan.kind)
    terminal, claim = begin(session, folder, plan, as_json=as_json, force=force, terse=terse, sweep=sweep)
    if sweep.measures == "utility" and kind.tuning is not None:
        document = run_tuning(kind, sweep, plan, folder, terminal, rebuild=rebuild, claim=claim)
        kind.tuning.show(terminal, document, folder)
    else:
        kept = {"pictures": not no_pictures, "aggregate_only": aggregate_only}
        found: Result = run_sweep(
            kind, sweep, plan, folder, terminal, rebuild=rebuild, force=force, claim=claim, **kept
        )
        document = found.to_json()
        show_result(terminal, kind, document, folder)
    if as_json:
        say(json.dumps(document))
