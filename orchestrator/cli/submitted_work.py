"""The command line that ``orch submit`` sends, as the cluster is to run it, checked without the cluster's data."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from audits.credentials import is_masked, mask
from audits.errors import BadInput, did_you_mean
from audits.own.permission import ALLOW, require_permission_for_programs
from audits.targets.forms import form_by_name, form_of, is_here, may_be_script
from orchestrator.cli import audit, sweep, tune
from orchestrator.cli.options import with_target
from orchestrator.cli.session import Session
from orchestrator.cli.sweeps import chosen, chosen_among, goal
from orchestrator.engine.own_code import code_of
from orchestrator.engine.plan.files import sort_of
from orchestrator.engine.plan.reach import OPTION
from orchestrator.engine.plan.reaches import changes_of, reaches
from orchestrator.engine.plan.target import Target
from orchestrator.engine.run.choice import choice_of
from orchestrator.engine.run.output_folder import usual_folder
from orchestrator.engine.store.trust import ALLOW as STORES
from orchestrator.engine.store.trust import KEY_FILE
from orchestrator.kinds import code_of_settings, kind_named, load_plan, texts_of

if TYPE_CHECKING:
    from orchestrator.engine.plan.base import BasePlan
    from tune_spaces.registry import Sweep

COMMANDS = {"audit": audit.command, "sweep": sweep.command, "tune": tune.command}
KEPT_HERE = ("out", "as_json", "force", "resume", "junit", "summary")
"""Options that concern this machine only."""
HANDED_ON = ("ORCH_STORE", "MLFLOW_TRACKING_URI")
SAID_OF_STORES = (STORES, KEY_FILE)
"""Variables that hold for the cluster as they are: its head has the same folders and the same key."""
PLAN = "plan.yaml"


@dataclass(frozen=True)
class Work:
    """A command that is to run on the cluster: as it is sent, its plan, and where its results go on this machine.

    ``source`` and ``sweep`` are files of this machine that travel: that of the plan, and that of a sweep.
    """

    words: tuple[str, ...]
    plan: BasePlan
    source: str | None
    sweep: Path | None
    out: Path
    as_json: bool
    force: bool
    junit: Path | None = None
    summary: Path | None = None


def read_command(session: Session, words: Sequence[str], out: str | None = None) -> Work:
    """Return the command that ``words`` give, checked as far as can be done without the cluster's data."""
    if not words or words[0] not in COMMANDS:
        given = f", not {words[0]!r}{did_you_mean(words[0], COMMANDS)}" if words else ""
        raise BadInput(f"submit runs {', '.join(COMMANDS)} on the cluster{given}: orch submit audit apollo PLAN …")
    name, here = words[0], COMMANDS[words[0]]
    values = here.make_context(f"submit {name}", list(words[1:]), obj=session).params
    if values.get("resume"):
        raise BadInput("--resume goes on with a folder of this machine; submit its plan: orch submit sweep NAME PLAN")
    source, changes = values["source"], values["overrides"]
    if name == "audit":
        source, changes = with_target(values["kind"], source, changes, values["targets"], values["members"])
    compute = {f"compute.{key}": values[key] for key in ("store", "workers") if values[key] is not None}
    if str(compute.get("compute.workers")).isdecimal():
        compute["compute.workers"] = int(compute["compute.workers"])
    swept = None
    if name != "audit":
        swept, source = (chosen if name == "sweep" else chosen_among)(values["name"], source, values)
        source = source or swept.base
    plan = load_plan(source, changes, {**compute, "compute.address": "auto"}, sweep=swept)
    if name == "tune" and swept:
        tune.require_kind(plan, values["kind"])
        choice_of(kind_named(plan.kind), swept, plan, *goal(swept, values))
    require_common_store(plan)
    require_no_secret([*words, *([swept.text] if swept else ())], plan)
    sweep_file = Path(values["name"]) if swept and not values["vary"] and sort_of(values["name"]) == "file" else None
    is_file = source is not None and sort_of(source) == "file" and (swept is not None or values["source"] is not None)
    swept_code = code_of_settings(plan.resolved(), swept, plan) if swept else ()
    asked = any(True for _ in (*code_of(plan.resolved()), *swept_code))  # and allowed, or it would have been refused
    everything = session.permission.everything or os.environ.get(ALLOW) == "1"
    if asked:
        require_no_program(plan, changes_of(swept, plan) if swept else (), everything)
    allowed: tuple[str, ...] = ("--allow-code",) if asked or everything else ()
    reached = reaches(plan, changes_of(swept, plan) if swept else ())
    places = {each.allowance for each in reached if not session.permission.is_own_word(each)}
    for credential, place in sorted(places | session.permission.allowed()):  # the job has nobody to ask
        allowed += (OPTION, f"{credential}@{place}" if credential else place)
    require_no_secret(allowed, plan)
    sent = {**values, "source": PLAN if is_file else values["source"]}
    if swept is not None:
        sent["name"] = None if values["vary"] else f"./{sweep_file.name}" if sweep_file else values["name"]
        sent["source"] = PLAN if is_file else source if values["vary"] else values["source"]
    return Work(
        words=(name, *words_of(here, sent), *allowed, "--set", "compute.address=auto"),
        plan=plan,
        source=source if is_file else None,
        sweep=sweep_file,
        out=Path(named) if (named := out or values["out"]) else default_folder(name, swept, values),
        as_json=values["as_json"],
        force=values["force"],
        junit=values.get("junit"),
        summary=values.get("summary"),
    )


def require_no_program(plan: BasePlan, changes: Iterable[Mapping[str, Any]], everything: bool) -> None:
    """Raise BadInput for a given model that is a program nobody has allowed, or may be one: a job may run all code.

    ``changes``: those of a sweep's settings; ``everything``: all code is allowed.
    """
    target = getattr(plan, "target", None)
    if not isinstance(target, Target) or everything:  # checkpoints, of GNQ, are weights alone
        return
    fields = {f"target.{field}" for field in target.MODELS}
    said = [value for change in changes for field, value in change.items() if field in fields]
    files = [text for value in said for text in ([value] if isinstance(value, str) else value or ())]
    files = list(dict.fromkeys([*target.named(target.MODELS).values(), *files]))
    here = [file for file in files if is_here(file)]
    require_permission_for_programs([file for file in here if form_of(file) == "torchscript"])
    if away := [
        file for file in files if file not in here and (may_be_script(file) or form_by_name(file) == "torchscript")
    ]:
        raise BadInput(
            f"{away[0]} is not here and may be a program (TorchScript), which a job with code of your own would run: "
            "add --allow-code if you trust it"
        )


def default_folder(name: str, swept: Sweep | None, values: Mapping[str, Any]) -> Path:
    """Return the folder into which a command writes where none is named."""
    if swept is None:
        return usual_folder(values["kind"])
    return tune.folder_of(swept) if name == "tune" else usual_folder(swept.name)


def words_of(here: click.Command, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield the command line that gives ``values``, but for options that concern this machine or the session only."""
    for parameter in here.params:
        value = values.get(str(parameter.name))
        if parameter.name in KEPT_HERE or value is None or value is False:
            continue
        if isinstance(parameter, click.Argument):
            yield str(value)
        elif value is True:
            yield parameter.opts[0]
        else:
            for one in value if parameter.multiple else [value]:
                yield from (parameter.opts[0], str(one))


def require_common_store(plan: BasePlan) -> None:
    """Raise BadInput unless the store is a place that nodes of a cluster can have in common."""
    where = "name it with --store, --set compute.store=… or ORCH_STORE"
    store = plan.compute.store
    if store is not None and urlsplit(store).username is not None:
        raise BadInput(
            "compute.store holds credentials, which all who see the job would see; keep them in the environment of the "
            "cluster's nodes (AWS_ACCESS_KEY_ID, …), or use a role"
        )
    store = store or os.environ.get("ORCH_STORE", "")
    if "://" not in store and not Path(store).is_absolute():
        said = f"store {store!r}" if store else "the default store, a folder of this machine,"
        raise BadInput(f"{said} cannot be reached by all nodes: give s3://…, gs://… or /…; {where}")


def require_no_secret(words: Sequence[str], plan: BasePlan) -> None:
    """Raise BadInput for credentials in addresses that would travel: a job's words, plan and variables are public."""
    told = [("", word) for word in words]
    told += [(f"{path} is ", text) for path, text in texts_of(plan.resolved())]
    told += [(f"{name} is ", os.environ[name]) for name in HANDED_ON if name in os.environ]
    for place, text in told:
        if mask(text) != text or is_masked(text):
            raise BadInput(
                f"{place}{mask(text)!r} holds credentials, which all who see the job would see; keep them in the "
                "environment of the cluster's nodes (AWS_ACCESS_KEY_ID, MLFLOW_TRACKING_USERNAME, …), or use a role"
            )
