"""Arguments and options that several commands share."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from audits.credentials import mask
from audits.errors import BadInput
from orchestrator.cli.completing import fields, files, plans
from orchestrator.cli.session import Session
from orchestrator.engine.kind import check_published
from orchestrator.engine.plan.overrides import parse_override
from orchestrator.engine.plan.reach import OPTION
from orchestrator.engine.run.tracking_uri import chosen_uri
from orchestrator.kinds import OF_TARGETS, check_against_data, check_sweep, kind_named, load_plan, texts_of

if TYPE_CHECKING:
    from orchestrator.engine.plan.base import BasePlan
    from tune_spaces.registry import Sweep

F = TypeVar("F", bound=Callable[..., Any])

PLAN_HELP = "PLAN is a YAML file or the name of a shipped plan (`orch ls plans`); the embedded default without it."


def plan_options(function: F) -> F:
    """Add PLAN, --set, --workers, --store, --allow-code and --allow-addresses."""
    for option in (
        allow_options,
        click.option(
            "--store",
            metavar="URI",
            callback=said_of("compute.store"),
            help="Where finished models and scores are kept (or ORCH_STORE).",
        ),
        click.option("--workers", metavar="N", help="Worker processes: a number, 0 for none, or auto."),
        set_option,
        click.argument("source", metavar="[PLAN]", required=False, shell_complete=plans),
    ):
        function = option(function)
    return function


def target_options(function: F) -> F:
    """Add --target and --members."""
    for option in (
        click.option(
            "--members",
            metavar="FILE|RULE",
            shell_complete=files,
            help="Which points of the data set the model of --target was trained on: a file of ids (.txt, .csv, .npy), "
            "or all, even, odd, START:STOP. Short for --set target.members=…",
        ),
        click.option(
            "--target",
            "targets",
            metavar="FILE|ADDRESS",
            shell_complete=files,
            multiple=True,
            callback=said_of("target.weights"),
            help="Audit a model of yours: its weights (.safetensors, .pt, .ckpt, …), of the architecture in the plan's "
            "section model, a program (TorchScript, .onnx), an address (http://…) or recorded answers (.parquet); "
            "repeated: checkpoints of one training, in order. Short for --set target.weights=…",
        ),
    ):
        function = option(function)
    return function


def with_target(
    kind: str, source: str | None, overrides: Sequence[str], targets: Sequence[str], members: str | None
) -> tuple[str, tuple[str, ...]]:
    """Return the plan to start from, a default of ``kind`` without one, and what changes in it by --target as well."""
    if members is not None and not targets and source is None:
        raise BadInput(f"--members {members} says what a model of yours was trained on; give its weights with --target")
    given = kind_named(OF_TARGETS.get(kind, kind) if targets else kind)
    more = [] if members is None else [f"target.members={json.dumps(members)}"]
    if targets:
        more.append(f"target.weights={json.dumps(targets[0] if len(targets) == 1 else list(targets))}")
    return source or given.default_plan, (*more, *overrides)


def set_option(function: F) -> F:
    """Add --set."""
    text = "Change one value of the plan, e.g. --set split.shadows=32; repeatable."
    return click.option(
        "--set", "overrides", metavar="A.B=C", multiple=True, help=text, shell_complete=fields, callback=said_by_set
    )(function)


def said_by_set(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Tell the session what --set says; what cannot be read is left to ``load_plan``."""
    for text in value:
        with contextlib.suppress(BadInput):
            path, said = parse_override(text)
            session_of(ctx).permission.said_of(texts_of(said, path))
    return value


def said_of(path: str) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """Return a callback that tells the session what an option says of the field at ``path``."""

    def say(ctx: click.Context, parameter: click.Parameter, value: Any) -> Any:
        for text in value if isinstance(value, tuple) else (value,):
            session_of(ctx).permission.said_of([(path, mask(text))] if text else ())
        return value

    return say


def allow_options(function: F) -> F:
    """Add --allow-code and --allow-addresses, which tell the session."""

    def allow(ctx: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> None:
        session_of(ctx).permission.allow(value)

    text = (
        "Let a plan file reach HOST, HOST:PORT or s3://BUCKET without asking, and send it CREDENTIAL, as the refusal "
        "names them; repeatable (or ORCH_ALLOW_ADDRESSES, with spaces between them)."
    )
    return allow_code_option(
        click.option(
            OPTION,
            multiple=True,
            metavar="[CREDENTIAL@]HOST",
            expose_value=False,
            callback=allow,
            help=text,
        )(function)
    )


def allow_code_option(function: F) -> F:
    """Add --allow-code, which tells the session."""

    def allow(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        session_of(ctx).permission.everything |= value

    text = "Let a plan file run code of yours (data.name: python:…) without asking (or ORCH_ALLOW_CODE=1)."
    return click.option("--allow-code", is_flag=True, expose_value=False, callback=allow, help=text)(function)


def session_of(ctx: click.Context) -> Session:
    """Return the session of the command in hand."""
    return ctx.find_object(Session) or Session()


def named(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Return a folder's name; raises BadInput for an empty one, such as a variable of a shell that is not set."""
    if value == "":
        raise BadInput("--out is empty; give a folder, or leave it out")
    return value


def run_options(function: F) -> F:
    """Add --out, --json, --no-pictures, --aggregate-only, --rebuild, --force, --quiet and --no-color."""
    for option in (
        colour_option,
        quiet_option,
        click.option(
            "--force",
            is_flag=True,
            help="Write over what another plan, sweep or choice left in --out; a search begins its journal anew.",
        ),
        click.option("--rebuild", is_flag=True, help="Check every stored artefact and compute damaged ones anew."),
        click.option(
            "--aggregate-only",
            is_flag=True,
            help="Let no id, score or picture of a single point out of the run: neither into --out nor into MLflow. "
            "Implies --no-pictures.",
        ),
        click.option("--no-pictures", is_flag=True, help="Let no picture of a data point into the result or its page."),
        json_option,
        click.option(
            "--out",
            type=click.Path(),
            metavar="DIR",
            callback=named,
            help="Folder of the result; runs/NAME by default.",
        ),
    ):
        function = option(function)
    return function


def log_models_option(function: F) -> F:
    """Add --log-models."""
    return click.option(
        "--log-models",
        type=click.Choice(["none", "first", "targets"]),
        help="Log the models that the audit judges in MLflow, where they can be served: those of the first target, or "
        "of all, unlearned and defended ones too. Whoever can read them there has them: they are published. Short for "
        "--set tracking.log_models=…",
    )(function)


def json_option(function: F) -> F:
    """Add --json."""
    text = "Print JSON on standard output; words for people go to standard error."
    return click.option("--json", "as_json", is_flag=True, help=text)(function)


def quiet_option(function: F) -> F:
    """Add --quiet, as ``terse``."""
    text = "Print nothing but the lines that a run ends with, and errors."
    return click.option("--quiet", "terse", is_flag=True, help=text)(function)


def colour_option(function: F) -> F:
    """Add --no-color."""

    def uncoloured(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
        if value:
            os.environ["NO_COLOR"] = "1"

    text = "Print without colours (or NO_COLOR=1)."
    return click.option("--no-color", is_flag=True, expose_value=False, is_eager=True, callback=uncoloured, help=text)(
        function
    )


def planned(
    source: str | None,
    overrides: Sequence[str],
    workers: str | None = None,
    store: str | None = None,
    *,
    absent: bool = False,
    kind: str | None = None,
    sweep: Sweep | None = None,
    log_models: str | None = None,
) -> BasePlan:
    """Return the plan that the options describe, checked against the data set and the tracking that it names.

    So is every setting of the ``sweep`` that the command in hand runs or prices, or a worker would find out in the
    midst of the others. ``kind``: as for ``load_plan``. ``absent``: the data need not be there, if their size is known.
    """
    values: dict[str, Any] = {}
    if workers is not None:
        if not workers.isdecimal() and workers != "auto":
            raise BadInput(f"--workers is {workers!r}; give a whole number, 0 for none, or auto")
        values["compute.workers"] = int(workers) if workers.isdecimal() else workers
    if store is not None:
        values["compute.store"] = store
    if log_models is not None:
        values["tracking.log_models"] = log_models
    plan = load_plan(source, overrides, values, kind, sweep)
    check_against_data(plan, absent=absent)
    chosen_uri(plan.tracking.uri)
    check_published(kind_named(plan.kind), plan)
    if sweep is not None:
        check_sweep(plan, sweep, absent=absent)
    return plan
