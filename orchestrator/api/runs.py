"""Audits and sweeps started from Python: the same plans, store and files as the command line's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from audits.errors import BadInput
from orchestrator.api.given import data_name, target_section
from orchestrator.api.report import Report
from orchestrator.engine.own_code import follow_edits
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.overrides import apply_overrides
from orchestrator.engine.plan.sweep_files import sweep_named
from orchestrator.engine.run.console import Terminal
from orchestrator.engine.run.output_folder import LOG_FILE, usual_folder
from orchestrator.engine.run.run import run_audit, run_sweep
from orchestrator.engine.run.taking import hold_folder, tell_notes
from orchestrator.kinds import KINDS, OF_TARGETS, check_against_data, check_sweep, kind_named, load_plan, plan_from

Plan = str | Path | Mapping[str, Any] | BasePlan
"""A plan's file, the name of a shipped plan, its content, or a plan that is checked already."""


def audit(
    plan: Plan = "apollo",
    values: Mapping[str, Any] | None = None,
    *,
    target: Any = None,
    members: Any = None,
    data: Any = None,
    workers: int | str = 0,
    store: str | Path | None = None,
    out: str | Path | None = None,
    force: bool = False,
    rebuild: bool = False,
    quiet: bool = False,
    pictures: bool = True,
    aggregate_only: bool = False,
) -> Report:
    """Carry out one audit and return its report.

    Parameters
    ----------
    plan:
        A plan, or the name of a kind of audit ("apollo", "tmia", "gnq", "mia"), which stands for its embedded default.
    values:
        Values of the plan to change, by dotted path: ``{"split.shadows": 32}``.
    target, members:
        A model of yours, which is audited and never trained: a module of the plan's architecture, a file of weights, an
        address, or a mapping of fields of the plan's section ``target`` to such; and which points of the data set it
        was trained on: ids (n,), a bool for every point, a file or a rule (``audits.targets.read_members``).
    data:
        Points of your own in the place of the plan's: arrays (inputs, labels), a data set of torch or torchvision, a
        DataLoader (``audits.data.points``), or a name as in ``data.name``. They are kept in a file below ``.orch``.
    workers:
        0 works in this process, without Ray; a number of workers, or "auto", starts Ray as the command line does.
    store:
        Folder or URI where finished work is kept; by default that of the command line (``.orch/store``).
    out:
        Folder of the result; by default one under ``runs/`` with a name that belongs to the plan alone.
    force:
        Write into ``out`` even if it holds the result of another plan.
    rebuild:
        Check every stored artefact and compute damaged ones anew.
    quiet:
        Print nothing.
    pictures:
        False: no picture of a data point is in the result or its page.
    aggregate_only:
        Keep nothing about a single point: no scores, no ids, no pictures.

    Raises
    ------
    audits.errors.BadInput
        One line, for what the command line refuses with exit code 2.
    """
    found = planned(plan, {**given_values(target, members, data), **(values or {})}, workers, store)
    check_against_data(found)
    kind = kind_named(found.kind)
    folder = Path(out) if out is not None else default_folder(found, found.kind)
    with hold_folder(folder, found, force=force) as claim:
        terminal = terminal_of(found, folder, quiet)
        run_audit(
            kind, found, folder, terminal, rebuild=rebuild, pictures=pictures, claim=claim,
            aggregate_only=aggregate_only,
        )  # fmt: skip
    return Report(folder)


def sweep(
    name: str,
    plan: Plan | None = None,
    values: Mapping[str, Any] | None = None,
    *,
    workers: int | str = 0,
    store: str | Path | None = None,
    out: str | Path | None = None,
    force: bool = False,
    rebuild: bool = False,
    quiet: bool = False,
    pictures: bool = True,
    aggregate_only: bool = False,
) -> Report:
    """Carry out a sweep around a plan (the sweep's own by default) and return its report; see ``audit``.

    ``name``: that of a shipped sweep, or a sweep file.

    Sweeps that measure utility instead of attacking write presets and no report; they are for the command line.
    """
    wanted = sweep_named(name)
    found = planned(wanted.base if plan is None else plan, values, workers, store)
    if wanted.measures == "utility":
        raise BadInput(
            f"sweep {name} measures utility and has no report; run it on the command line: orch sweep {name}"
        )
    check_against_data(found)
    check_sweep(found, wanted)
    folder = Path(out) if out is not None else default_folder(found, wanted.name)
    with hold_folder(folder, found, force=force, sweep=wanted) as claim:
        terminal = terminal_of(found, folder, quiet)
        run_sweep(
            kind_named(found.kind), wanted, found, folder, terminal, rebuild=rebuild, force=force, pictures=pictures,
            claim=claim, aggregate_only=aggregate_only,
        )  # fmt: skip
    return Report(folder)


def planned(plan: Plan, values: Mapping[str, Any] | None, workers: int | str, store: str | Path | None) -> BasePlan:
    """Return the checked plan with ``values``, ``workers`` and ``store`` put in."""
    changes = {**(values or {}), "compute.workers": workers}
    if store is not None:
        changes["compute.store"] = str(store)
    if isinstance(plan, BasePlan):
        follow_edits()
        return plan.changed(changes)
    if isinstance(plan, Mapping):
        return plan_from(apply_overrides(dict(plan), list(changes.items())))
    source = f"./{plan}" if isinstance(plan, Path) and not plan.is_absolute() else str(plan)  # a path is no name
    if source in KINDS:
        given = any(name.partition(".")[0] == "target" for name in changes)
        source = kind_named(OF_TARGETS.get(source, source) if given else source).default_plan
    return load_plan(source, values=changes)


def given_values(target: Any, members: Any, data: Any) -> dict[str, Any]:
    """Return what a target and points that are held in Python say in a plan, by dotted path."""
    if target is None and members is not None:
        raise BadInput("members says what a model of yours was trained on; give the model as target")
    found = {} if target is None else {f"target.{name}": each for name, each in target_section(target, members).items()}
    return found if data is None else {**found, "data.name": data_name(data)}


def default_folder(plan: BasePlan, name: str) -> Path:
    """Return the folder of a run that was told none: it belongs to the plan alone; raises as ``usual_folder``."""
    return usual_folder(f"{name}-{plan.plan_hash[:8]}", "out='{}'")


def terminal_of(plan: BasePlan, folder: Path, quiet: bool) -> Terminal:
    """Return where a run in ``folder`` speaks to the user; the notes of its plan are told."""
    terminal = Terminal(folder / LOG_FILE)
    terminal.console.quiet = quiet
    tell_notes(terminal, plan)
    return terminal
