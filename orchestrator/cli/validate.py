"""``orch validate``: everything that is wrong with a plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from actors.cluster import size_workers
from audits.errors import BadInput
from orchestrator.cli.options import PLAN_HELP, allow_code_option, planned, set_option
from orchestrator.engine.plan.errors import PlanProblems
from orchestrator.kinds import open_design

if TYPE_CHECKING:
    from orchestrator.engine.plan.base import BasePlan


@click.command("validate", epilog=PLAN_HELP)
@click.argument("source", metavar="[PLAN]", required=False)
@set_option
@allow_code_option
def command(source: str | None, overrides: tuple[str, ...]) -> None:
    """List everything that is wrong with a plan, one line each; exit code 2 if there is anything."""
    try:
        plan = planned(source, overrides)
    except PlanProblems as error:
        for problem in error.problems:
            click.echo(f"orch: {problem}", err=True)
        raise click.exceptions.Exit(2) from None
    if plan.data.groups is not None:
        open_design(plan).borders()  # sizes of groups decide whether they can be dealt
    for text in (*plan.notes, *(f"warning: {line}" for line in (*plan.warnings, *too_small_here(plan)))):
        click.echo(text)
    click.echo(f"{source or 'the embedded default'} is valid")


def too_small_here(plan: BasePlan) -> Iterator[str]:
    """Yield what a run on this machine would be refused for; the plan may be meant for a cluster."""
    compute = plan.compute
    if compute.address is not None or compute.workers == 0:
        return
    gpus = 0.0 if compute.gpus_per_worker == "auto" else compute.gpus_per_worker
    try:
        size_workers("auto", gpus, cpus=compute.cpus_per_worker)
    except BadInput as error:
        yield f"on this machine {error}"
