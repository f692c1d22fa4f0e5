"""``orch tune``: settings of an attack, chosen without asking a target."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from audits.errors import BadInput
from orchestrator.cli.options import PLAN_HELP, plan_options, planned, run_options
from orchestrator.cli.session import Session
from orchestrator.cli.sweeps import chosen, search_options
from orchestrator.engine.run.choice import Mode, choice_of, selection_of
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import claim_folder, keep_sweep, refuse_other_sweep
from orchestrator.engine.run.selecting import run_selection
from orchestrator.engine.run.summary import show_result
from orchestrator.kinds import kind_named
from tune_spaces.registry import Sweep


@click.command("tune", epilog=PLAN_HELP)
@click.argument("kind")
@click.argument("name", metavar="[NAME|FILE]", required=False)
@plan_options
@search_options
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
    rebuild: bool,
    force: bool,
    **asked: Any,
) -> None:
    """Choose a setting of a sweep for the attack of --metric, then audit the targets once with it.

    NAME, FILE and --vary are those of orch sweep. Its settings and the plan's own are compared by what the attack finds
    of shadows that play the target: their truth is known, and no target is asked. The best is frozen in tuned.yaml, and
    the targets are audited with it and with the plan's own setting. So what is found of them may be quoted, unlike that
    of the best of a sweep.
    """
    audit = kind_named(kind)
    selection_of(audit)
    sweep, source = chosen(name, source, {**asked, "metric": (), "mode": ()})
    plan = planned(source or sweep.base, overrides, workers, store, sweep=sweep)
    if plan.kind != kind:
        raise BadInput(f"audit.kind is {plan.kind!r} in the plan, but the audit to tune is {kind!r}")
    choice = choice_of(audit, sweep, plan, *goal(sweep, asked))
    folder = Path(out or f"runs/tune-{sweep.name}")
    if not force:
        refuse_other_sweep(folder, sweep)
    session.log = claim_folder(folder, plan, force=force)
    keep_sweep(folder, sweep)
    terminal = Terminal(session.log, json=as_json)
    for text in (*plan.notes, *(f"warning: {line}" for line in plan.warnings)):
        terminal.line(text)
    document = run_selection(audit, choice, plan, folder, terminal, rebuild=rebuild).to_json()
    show_result(terminal, audit, document, folder)
    if as_json:
        click.echo(json.dumps(document))


def goal(sweep: Sweep, asked: Mapping[str, Any]) -> tuple[str | None, Mode]:
    """Return the one metric to choose by and its better end: those of the options, else those of the sweep's file."""
    search = sweep.search
    metrics = asked["metric"] or (search.metric if search else ())
    modes = asked["mode"] or (search.mode if search else ()) or ("max",)
    if len(metrics) > 1 or len(modes) > 1:
        raise BadInput(f"--metric: {', '.join(metrics)} are {len(metrics)}; a setting is chosen by one")
    if modes[0] not in ("max", "min"):
        raise BadInput(f"--mode is {modes[0]!r}; allowed: max, min")
    return (metrics[0] if metrics else None), modes[0]
