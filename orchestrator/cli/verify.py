"""``orch verify``: some of a run's models and scores made once more, and compared with those of the store."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from audits.errors import BadInput
from orchestrator.cli.lines import say
from orchestrator.cli.options import PLAN_HELP, colour_option, json_option, plan_options, planned
from orchestrator.engine.plan.files import sort_of
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import PLAN_FILE, RESULT_FILE
from orchestrator.engine.run.verifying import verify
from orchestrator.kinds import kind_named
from orchestrator.report.result import read_result
from tune_spaces.registry import Sweep, fixed


@click.command("verify", epilog=f"{PLAN_HELP} It may be the folder of a finished audit or sweep.")
@plan_options
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    default=5,
    metavar="N",
    show_default=True,
    help="How many artefacts are made once more; they are drawn, from each stage in its turn.",
)
@click.option(
    "--seed", type=click.IntRange(min=0), metavar="S", help="Draw those of this number; a new one by default."
)
@click.option(
    "--rounding", is_flag=True, help="Let numbers of another kind of machine differ by what rounding does, 0.1 %."
)
@json_option
@colour_option
def command(
    source: str | None,
    overrides: tuple[str, ...],
    workers: str | None,
    store: str | None,
    sample: int,
    seed: int | None,
    rounding: bool,
    as_json: bool,
) -> None:
    """Make some of the models and scores of PLAN once more, and compare them with those of the store.

    Exit code 1 when one differs: somebody has changed the store, or the work cannot be repeated. All must have
    the same values; with --rounding what another kind of machine made, by what the store says, the same up to rounding.
    A model or score is made of the inputs that the store has, so each is held to what it was made of. Nothing is
    written into the store.
    """
    settings = settings_of_run(Path(source)) if source and sort_of(source) == "folder" else None
    sweep = Sweep("verify", "", "", fixed(settings), "", "") if settings else None
    file = source if settings is None else str(Path(source or "") / PLAN_FILE)
    plan = planned(file, (*overrides, "tracking.uri=null"), workers, store, sweep=sweep)  # nothing is tracked
    terminal = Terminal(json=as_json)
    drawn_by = secrets.randbelow(10**8) if seed is None else seed
    kind, chosen = kind_named(plan.kind), settings or plan.settings()
    found = verify(kind, plan, chosen, terminal, sample=sample, seed=drawn_by, rounding=rounding)
    for text in found.lines():
        terminal.closing(text)
    if as_json:
        say(json.dumps(found.to_json()))
    if found.unlike:
        raise click.exceptions.Exit(1)


def settings_of_run(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return setting → dotted fields that change, of a run's folder; none for a run that has no result yet."""
    if not (folder / PLAN_FILE).is_file():
        raise BadInput(f"{folder} has no {PLAN_FILE}; give the --out folder of an audit or a sweep, or a plan")
    if not (folder / RESULT_FILE).is_file():
        return {}
    return {each["setting"]: each["overrides"] for each in read_result(folder)["settings"]}
