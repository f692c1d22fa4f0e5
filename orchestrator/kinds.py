"""The table of audits, loaded on demand: which kind a plan is of, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from audits.credentials import UNKNOWN, is_known, mask
from audits.errors import BadInput, did_you_mean
from audits.own.permission import Named, is_own, require_permission
from orchestrator.engine.data import data_of, on_this_machine
from orchestrator.engine.kind import Design, Kind, load
from orchestrator.engine.own_code import follow_edits
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.errors import PlanProblems, shown
from orchestrator.engine.plan.files import read_plan
from orchestrator.engine.plan.overrides import apply_overrides, parse_override

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from orchestrator.engine.store.store import Store

KINDS = {
    "apollo": "orchestrator.apollo.kind:KIND",
    "tmia": "orchestrator.tmia.kind:KIND",
    "gnq": "orchestrator.gnq.kind:KIND",
}
"""Name (``audit.kind`` of a plan) → where its ``Kind`` stands."""


def kind_named(name: str) -> Kind:
    """Return the kind of audits called ``name``; raises ``BadInput`` for others."""
    if name not in KINDS:
        raise BadInput(f"no audit {name!r}{did_you_mean(name, KINDS)}; audits: {', '.join(KINDS)}")
    found: Kind = load(KINDS[name])
    return found


def load_plan(
    source: str | None = None, overrides: Iterable[str] = (), values: Mapping[str, Any] | None = None
) -> BasePlan:
    """Return the plan of a file, of a shipped plan's name, or the embedded default (None).

    ``overrides`` are texts such as ``split.shadows=32`` (``--set``), ``values`` dotted paths with ready values; both
    are put in before the plan is checked. Credentials in addresses are masked (``audits.credentials``). Raises
    ``BadInput``: ``PlanProblems`` when the YAML is readable but says something impossible, or when it was written by a
    finished run, which keeps no credentials.
    """
    changes = [*map(parse_override, overrides), *mask(dict(values or {})).items()]
    raw = apply_overrides(read_plan(source), changes)
    if forgotten := [f"{path} is {shown(text)}: {UNKNOWN}" for path, text in texts_of(raw) if not is_known(text)]:
        raise PlanProblems(forgotten)
    require_permission(list(code_of(raw)))  # before the modules of the kind are imported, which takes seconds
    follow_edits()
    return plan_from(raw)


def code_of(value: Any, root: Path | None = None) -> Iterator[Named]:
    """Yield every name of users' code in nested mappings and lists, and the ``root`` that stands beside it."""
    if isinstance(value, str):
        if is_own(value):
            yield value, root
    elif isinstance(value, Mapping):
        beside = value.get("root")
        for item in value.values():
            yield from code_of(item, Path(beside).expanduser() if isinstance(beside, str) else None)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from code_of(item)


def texts_of(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield the dotted path and the text of every text in nested mappings and lists."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping | list):
        for key, item in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from texts_of(item, f"{path}.{key}" if path else str(key))


def plan_from(raw: Mapping[str, Any], notes: tuple[str, ...] = ()) -> BasePlan:
    """Return the checked plan of a plain mapping, of the class that its ``audit.kind`` asks for (default: apollo)."""
    section = raw.get("audit")
    name = section.get("kind", "apollo") if isinstance(section, Mapping) else "apollo"
    if isinstance(name, str) and name in KINDS:
        return kind_named(name).check(raw, notes)
    near = did_you_mean(name, KINDS) if isinstance(name, str) else ""
    raise PlanProblems([f"audit.kind is {shown(name)}{near}; allowed: {', '.join(KINDS)}"])


def check_against_data(plan: BasePlan, *, absent: bool = False) -> None:
    """Refuse a plan whose data set is not there, is too small for it, or does not fit the architecture.

    ``absent``: a set that is not there will do, if its size is known and the plan names no root. Raises ``BadInput``
    (also the catalogue's own, for a data set that is unknown or missing).
    """
    kind_named(plan.kind).fits(plan, absent)


def open_design(
    plan: BasePlan, store: Store | None = None, data: Dataset | None = None, device: str | None = None
) -> Design:
    """Return ``plan`` laid out on its data set or on ``data``, by its kind."""
    found = data or data_of(plan.data.name, plan.data.root, plan.data.groups)
    if device is None:
        plan, device = on_this_machine(plan)
    return kind_named(plan.kind).lay_out(plan, found, device, store)
