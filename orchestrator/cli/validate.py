"""``orch validate``: everything that is wrong with a plan, or with a sweep file and its settings."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

from actors.cluster import size_workers
from audits.data.catalogue import describe
from audits.errors import BadInput, how_many
from orchestrator.cli.completing import plans
from orchestrator.cli.lines import say
from orchestrator.cli.options import PLAN_HELP, allow_options, planned, set_option
from orchestrator.engine.data import gpu_here, looked_at
from orchestrator.engine.given_files import with_digests
from orchestrator.engine.media import terminal
from orchestrator.engine.plan.distinct import distinct, told_same
from orchestrator.engine.plan.errors import PlanProblems
from orchestrator.engine.plan.files import sort_of
from orchestrator.engine.plan.sweep_files import is_sweep, sweep_named
from orchestrator.engine.target_check import check_target_of
from orchestrator.kinds import open_design

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from orchestrator.engine.plan.base import BasePlan
    from tune_spaces.registry import Settings, Sweep


@click.command("validate", epilog=PLAN_HELP)
@click.argument("source", metavar="[PLAN]", required=False, shell_complete=plans)
@set_option
@allow_options
def command(source: str | None, overrides: tuple[str, ...]) -> None:
    """List everything that is wrong with a plan, one line each; exit code 2 if there is anything.

    Of a sweep file all settings are checked, or the corners of what is searched, around its base plan.
    """
    sweep = sweep_named(source) if source and sort_of(source) == "file" and is_sweep(Path(source)) else None
    try:
        plan = planned(sweep.base if sweep else source, overrides, sweep=sweep)
    except PlanProblems as error:
        for problem in error.problems:
            say(f"orch: {terminal(problem)}", err=True)
        raise click.exceptions.Exit(2) from None
    facts = describe(plan.data.name, plan.data.root)
    seen = lay_out(plan, sweep) if facts.present else []
    noted = dict.fromkeys([*facts.notes, *(note for data in seen for note in data.notes)])
    for text in (*plan.notes, *noted, *(f"warning: {line}" for line in (*plan.warnings, *too_small_here(plan)))):
        say(terminal(text))
    say(terminal(f"{source or 'the embedded default'} is valid{settings_in_words(sweep, plan) if sweep else ''}"))


def lay_out(plan: BasePlan, sweep: Sweep | None = None) -> list[Dataset]:
    """Lay every setting out on its data as a run does before any work, which refuses what only points and groups show.

    Return these data sets. Of a search, whose settings are not known yet, that is the plan itself.
    """
    settings = plan.settings() if sweep is None else {} if searches(sweep) else settings_of(sweep, plan)[0]
    look, seen = cache(looked_at), []
    for changes in settings.values() or ({},):
        changed = with_digests(plan.changed(changes) if changes else plan)
        seen.append(look(changed.data.name, changed.data.root, changed.data.groups))
        design = open_design(changed, data=seen[-1], device="cpu")
        design.priced().jobs()  # also where others cannot be laid out before the first are done
        check_target_of(design)
        if changed.data.groups is not None:
            design.priced().borders()  # sizes of groups decide whether they can be dealt
    return seen


def searches(sweep: Sweep) -> bool:
    """Say whether each setting is chosen by what earlier ones came to."""
    return sweep.search is not None and sweep.search.adaptive


def settings_of(sweep: Sweep, plan: BasePlan) -> tuple[Settings, dict[str, str]]:
    """Return the settings of a sweep that differ, and those that are equal to others, with these."""
    return distinct(sweep.settings(plan.resolved()), plan)


def settings_in_words(sweep: Sweep, plan: BasePlan) -> str:
    """Return how many settings a sweep file has, in words."""
    search = sweep.search
    if search is None or not search.adaptive:
        settings, same = settings_of(sweep, plan)
        again = f"; {told_same(same)}" if same else ""
        return f": {how_many(len(settings), 'setting')} of {sweep.base}{again}"
    return f": {how_many(search.samples or len(search.space.grid()), 'trial')} around {sweep.base}"


def too_small_here(plan: BasePlan) -> Iterator[str]:
    """Yield what a run on this machine would be refused for; the plan may be meant for a cluster."""
    compute = plan.compute
    if compute.address is not None:
        return
    if compute.device.startswith("cuda"):
        try:
            gpu_here(plan, compute.device)
        except BadInput as error:
            yield str(error)
    if compute.workers == 0:
        return
    gpus = 0.0 if compute.gpus_per_worker == "auto" else compute.gpus_per_worker
    try:
        most = size_workers("auto", gpus, cpus=compute.cpus_per_worker)
    except BadInput as error:
        yield f"on this machine {error}"
        return
    if compute.workers == "auto" and most < (team := compute.workers_per_model):
        yield f"on this machine {most} worker(s) fit, but compute.workers_per_model is {team}; give a number of workers"
