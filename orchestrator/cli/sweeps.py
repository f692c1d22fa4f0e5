"""The sweep that a command is about: a name, a file, or ``--vary``, and the options that say how it is searched."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from audits.errors import BadInput
from orchestrator.cli.completing import fields
from orchestrator.cli.options import session_of
from orchestrator.engine.plan.files import parse_yaml
from orchestrator.engine.plan.sweep_files import parse_spec, read_sweep_file, same_sweep, sweep_named, varied
from orchestrator.engine.run.choice import Mode
from orchestrator.engine.run.output_folder import PLAN_FILE, SWEEP_FILE, name_left, usual_folder
from orchestrator.kinds import texts_of
from tune_spaces.registry import Sweep

F = TypeVar("F", bound=Callable[..., Any])

FIELDS = ("samples", "search", "scheduler", "metric", "mode", "seeds", "seconds", "at_a_time", "search_seed")
"""Options that are fields of a sweep file."""


def said_by_vary(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Tell the session what --vary says; what cannot be read is left to ``varied``."""
    for text in value:
        with contextlib.suppress(BadInput):
            path, spec = parse_spec(text)
            for said in spec if isinstance(spec, list) else next(iter(spec.values())):
                session_of(ctx).permission.said_of(texts_of(said, path))
    return value


VARY = click.option(
    "--vary",
    multiple=True,
    metavar="PATH=SPEC",
    shell_complete=fields,
    callback=said_by_vary,
    help="Vary a field of PLAN, by values (audit.search.epsilon=0.02,0.05) or a primitive of Ray Tune "
    "(audit.search.beta=loguniform(0.25, 16)); repeatable.",
)


def search_options(function: F) -> F:
    """Add --vary, and the fields of a sweep file that say how its space is searched."""
    return with_options(
        function,
        VARY,
        click.option(
            "--samples",
            metavar="N",
            help="Settings that random and optuna draw; more of them extend a finished run, fewer are refused.",
        ),
        click.option("--search", metavar="grid|random|optuna", help="random where --samples is given, else grid."),
        click.option("--scheduler", metavar="none|asha", help="asha stops poor trials early."),
        click.option(
            "--metric",
            multiple=True,
            metavar="NAME",
            help="Number to search by, e.g. gradient_ascent.apollo.auc; two for a Pareto front.",
        ),
        click.option("--mode", multiple=True, metavar="min|max", help="Which end of --metric is best; max by default."),
        click.option("--seeds", metavar="N,N", help="Run every setting at each of these seeds of the plan."),
        click.option("--seconds", metavar="S", help="Time budget of optuna and asha."),
        click.option("--at-a-time", metavar="N", help="Trials of optuna and asha that run at once."),
        click.option("--search-seed", metavar="N", help="Seed of the draws and of the searcher."),
    )


def choice_options(function: F) -> F:
    """Add --vary, and those fields of a sweep file that ``orch tune`` heeds: its settings are known beforehand."""
    return with_options(
        function,
        VARY,
        click.option(
            "--samples",
            metavar="N",
            help="Settings that random draws; more of them extend a finished choice, fewer are refused.",
        ),
        click.option("--search", metavar="grid|random", help="random where --samples is given, else grid."),
        click.option("--search-seed", metavar="N", help="Seed of the draws."),
        click.option(
            "--metric",
            multiple=True,
            metavar="NAME",
            help="Number of one attack to choose by, e.g. gradient_ascent.apollo.auc; that of FILE without it.",
        ),
        click.option(
            "--mode",
            multiple=True,
            metavar="min|max",
            help="Which end of --metric is best: max by default; min only among the defences of GNQ.",
        ),
    )


def with_options(function: F, *options: Callable[[F], F]) -> F:
    """Add options, which --help shows in this order."""
    for option in reversed(options):
        function = option(function)
    return function


def chosen(name: str | None, source: str | None, asked: Mapping[str, Any]) -> tuple[Sweep, str | None]:
    """Return the sweep that the command line gives, and the plan beside it, if any.

    With --vary the only word is the plan. Raises BadInput.
    """
    changes = fields_of(asked)
    if asked["vary"]:
        if name is not None and source is not None:
            raise BadInput(f"--vary is a sweep of its own, around one plan; leave out {name} or {source}")
        source = name if source is None else source
        return varied(asked["vary"], source, changes), source
    if name is None:
        raise BadInput("no sweep is named; give NAME (`orch ls sweeps`), a sweep file, or --vary PATH=SPEC")
    return sweep_named(name, changes), source


def chosen_among(name: str | None, source: str | None, asked: Mapping[str, Any]) -> tuple[Sweep, str | None]:
    """Return the sweep among whose settings ``orch tune`` chooses, and the plan beside it, if any; raises BadInput."""
    for option, adaptive in (("search", "optuna"), ("scheduler", "asha")):
        if asked.get(option) == adaptive:
            raise BadInput(
                f"--{option} {adaptive} chooses settings by what targets answer while it goes on; tune with --search "
                "grid or random"
            )
    return chosen(name, source, {**asked, "metric": (), "mode": ()})


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


def left_in(name: str | None, out: str | None, asked: Mapping[str, Any]) -> tuple[Path, Sweep]:
    """Return the folder of a run to go on with, and its sweep, whose file lies there; raises BadInput."""
    given = None if name is None else sweep_named(name)
    if given is None and out is None:
        raise BadInput("--resume: name the sweep, or the folder of its run with --out")
    folder = Path(out) if out else usual_folder(given.name if given else "")
    if not (folder / PLAN_FILE).is_file():
        raise BadInput(f"--resume: {folder} holds no run to go on with; start it without --resume")
    file = folder / SWEEP_FILE
    if not file.is_file():
        if given is None:
            raise BadInput(f"--resume: {folder} holds no {SWEEP_FILE}; name the sweep as well")
        return folder, sweep_named(str(name), fields_of(asked))
    own = read_sweep_file(file, given.name if given else name_left(folder))
    if given is not None and not same_sweep(given, own):
        raise BadInput(f"--resume: {folder} holds the run of another sweep than {name}; leave out {name}")
    return folder, read_sweep_file(file, own.name, fields_of(asked))


def fields_of(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a sweep file that options give."""
    found: dict[str, Any] = {}
    for field in FIELDS:
        given = asked.get(field)
        if given is None or given == ():
            continue
        if field in ("metric", "mode"):
            found[field] = list(given)
        elif field == "seeds":
            found[field] = seeds_of(given)
        else:
            found[field] = parse_yaml(given, f"--{field.replace('_', '-')}")
    return found


def seeds_of(given: str) -> list[int]:
    """Return the seeds of --seeds; raises BadInput."""
    try:
        return [int(each) for each in given.split(",")]
    except ValueError:
        raise BadInput(f"--seeds {given!r}: give whole numbers with commas between them, e.g. --seeds 0,1,2") from None
