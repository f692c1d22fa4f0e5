"""``orch cost``: the estimate of a plan before it runs."""

from __future__ import annotations

import json
import math
from typing import Any

import click

from audits.errors import BadInput
from orchestrator.cli.completing import sweeps
from orchestrator.cli.lines import say
from orchestrator.cli.options import PLAN_HELP, colour_option, json_option, log_models_option, plan_options, planned
from orchestrator.cli.sweeps import chosen, chosen_among, goal, search_options
from orchestrator.engine.cost.estimate import estimate
from orchestrator.engine.cost.table import cost_lines, cost_table
from orchestrator.engine.run.choice import choice_of, selection_of
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.taking import tell_notes
from orchestrator.kinds import kind_named
from tune_spaces.files import as_drawn


@click.command("cost", epilog=PLAN_HELP)
@plan_options
@click.option(
    "--sweep",
    "name",
    metavar="NAME|FILE",
    shell_complete=sweeps,
    help="Price a sweep (`orch ls sweeps`, or a file): PLAN, or its own plan.",
)
@click.option(
    "--tune", is_flag=True, help="Price orch tune with this sweep: the rehearsal of all settings, then the audit."
)
@search_options
@click.option(
    "--images-per-second",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    help="Price by this throughput of training of one worker, say one GPU of yours; nothing is timed here.",
)
@log_models_option
@json_option
@colour_option
def command(
    source: str | None,
    overrides: tuple[str, ...],
    workers: str | None,
    store: str | None,
    name: str | None,
    tune: bool,
    images_per_second: float | None,
    log_models: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Estimate the models that PLAN trains or finds in the store, and the time, disk and label queries it takes.

    With --sweep or --vary all settings of the sweep are priced together: what they share counts once. Of a search that
    chooses its settings as it goes on, as many random draws are priced, each run to its end. With --tune no target is
    asked about any setting but the plan's own and one other.

    Runs nothing but, if the store knows no model like these, a few training steps on random data to time them, and a
    target that is a program on a few points, to see that it takes them. Of data sets of known size (`orch data ls`) the
    images need not be there.
    """
    if images_per_second is not None and not math.isfinite(images_per_second):
        raise BadInput(f"--images-per-second is {images_per_second}; give a number of images, e.g. 2500")
    sweep = None
    if tune or name is not None or asked["vary"]:
        sweep, source = (chosen_among if tune else chosen)(name, source, asked)
        source = source or sweep.base
    plan = planned(source, overrides, workers, store, absent=True, sweep=sweep, log_models=log_models)
    kind = kind_named(plan.kind)
    rehearsal = None
    if tune and sweep:
        plan = selection_of(kind).own(plan)
        rehearsal = choice_of(kind, sweep, plan, *goal(sweep, asked)).rehearsal(kind)
    cost = estimate(kind, plan, sweep and as_drawn(sweep), images_per_second, rehearsal)
    if as_json:
        say(json.dumps(cost.to_json()))
        return
    terminal = Terminal()
    tell_notes(terminal, plan)
    if not cost.data_present:
        terminal.line(f"data set {plan.data.name!r} is not here; the cost is estimated as if it were")
    terminal.table(cost_table(cost))
    for text in cost_lines(cost):
        terminal.line(text)
