"""``orch cost``: the estimate of a plan before it runs."""

from __future__ import annotations

import json

import click

from orchestrator.cli.options import PLAN_HELP, json_option, plan_options, planned
from orchestrator.engine.cost.estimate import estimate
from orchestrator.engine.cost.table import cost_lines, cost_table
from orchestrator.engine.run.console import Terminal
from orchestrator.kinds import kind_named
from tune_spaces import SWEEPS


@click.command("cost", epilog=PLAN_HELP)
@plan_options
@click.option("--sweep", "name", metavar="NAME", help="Price the sweep NAME (`orch ls sweeps`): PLAN, or its own plan.")
@json_option
def command(
    source: str | None,
    overrides: tuple[str, ...],
    workers: str | None,
    store: str | None,
    name: str | None,
    as_json: bool,
) -> None:
    """Estimate the models that PLAN trains or finds in the store, and the time, disk and label queries it takes.

    With --sweep all settings of the sweep are priced together: what they share counts once.

    Runs nothing but, if the store knows no model like these, a few training steps on random data to time them.
    """
    sweep = None
    if name is not None:
        sweep = SWEEPS[name]
        source = source or sweep.base
    plan = planned(source, overrides, workers, store, absent=True)
    cost = estimate(kind_named(plan.kind), plan, sweep)
    if as_json:
        click.echo(json.dumps(cost.to_json()))
        return
    terminal = Terminal()
    for text in (*plan.notes, *(f"warning: {line}" for line in plan.warnings)):
        terminal.line(text)
    if not cost.data_present:
        terminal.line(f"data set {plan.data.name!r} is not there: the cost is what it would be if it were")
    terminal.table(cost_table(cost))
    for text in cost_lines(cost):
        terminal.line(text)
