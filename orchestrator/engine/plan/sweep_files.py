"""Sweeps by name, in files and on the command line: YAML or ``--vary`` in, a checked sweep out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml

from audits.credentials import hide
from audits.errors import BadInput, did_you_mean
from orchestrator.engine.plan.files import (
    DEFAULT_PLAN,
    file_text,
    folder_given,
    is_told_as_sweep,
    nearby_plans,
    parse_yaml,
    sort_of,
)
from tune_spaces import SWEEPS, Sweep
from tune_spaces.dimensions import FORMS
from tune_spaces.files import sweep_of
from tune_spaces.registry import Settings
from tune_spaces.space import Search

SUFFIXES = (".yaml", ".yml")
CALL = re.compile(r"(\w+)\s*\((.*)\)", re.DOTALL)
CALL_BEGUN = re.compile(r"(\w+)\s*([(\[]?)")


def sweep_named(name: str, changes: Mapping[str, Any] | None = None) -> Sweep:
    """Return the shipped sweep called ``name``, or that of a file; a name is never that of a file beside it.

    ``changes``: fields of a sweep file to put in the place of those that are written. Raises BadInput.
    """
    path, sort = Path(name), sort_of(name, "sweep")
    if sort == "file":
        return read_sweep_file(path, path.stem, changes)
    if sort == "plan":
        raise BadInput(f"{name} is a plan, not a sweep; sweep it with: orch sweep NAME {name} (`orch ls sweeps`)")
    if sort == "folder":
        raise folder_given(path, "a sweep")
    if sort == "" and path.suffix in SUFFIXES:
        near = did_you_mean(name, [*map(str, nearby_plans(path)), *SWEEPS])
        raise BadInput(f"no sweep file {name!r}{near}; `orch ls sweeps` lists those that come with the package")
    found = SWEEPS[name]
    if not changes:
        return found
    if not found.text:
        raise BadInput(
            f"sweep {name} follows its plan and takes no {', '.join(changes)}; write a file, or vary fields by --vary"
        )
    return sweep_from(parse_yaml(found.text, name), name, found.text, name, changes)


def read_sweep_file(path: Path, name: str, changes: Mapping[str, Any] | None = None) -> Sweep:
    """Return the sweep that the file ``path`` describes, called ``name``; raises BadInput."""
    text = file_text(path, "a sweep")
    return sweep_from(parse_yaml(text, str(path)), name, text, str(path), changes)


def sweep_from(value: Any, name: str, text: str, source: str, changes: Mapping[str, Any] | None = None) -> Sweep:
    """Return the sweep of what YAML says; ``source`` names it in messages."""
    if not isinstance(value, dict):
        raise BadInput(f"{source}: a sweep is a mapping of fields (base:, space: …); see docs/how-to/sweeps.md")
    if changes:
        value = {**value, **changes}
        text = yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=120)
    if "audit" in value:
        raise BadInput(f"{source} is a plan, not a sweep; sweep it with: orch sweep NAME {source}")
    try:
        return sweep_of(value, name, hide(text))
    except BadInput as error:
        raise BadInput(f"{source}: {error}") from None


def is_sweep(path: Path) -> bool:
    """Say whether the file ``path`` is a sweep rather than a plan; raises BadInput for what is no YAML."""
    return is_told_as_sweep(parse_yaml(file_text(path, "a plan"), str(path)))


def same_sweep(one: Sweep, other: Sweep) -> bool:
    """Say whether two sweeps run the same settings, or search the same space alike; either may go on for longer."""
    if not (one.text and other.text):  # what a function says depends on its plan
        return one is other
    return _identity(one) == _identity(other)


def _identity(sweep: Sweep) -> tuple[Search | None, Settings]:
    """Return what tells the sweep of a file from others: all but how many settings are drawn, and in what time."""
    search = sweep.search
    if search is None or search.samples is None:
        return search and replace(search, seconds=None, at_a_time=None), sweep.settings({})
    return replace(search, samples=None, seconds=None, at_a_time=None), {}


def varied(specs: Sequence[str], base: str | None, changes: Mapping[str, Any]) -> Sweep:
    """Return the sweep that ``--vary PATH=SPEC`` describes around the plan ``base``; raises BadInput."""
    space = dict(map(parse_spec, specs))
    if len(space) < len(specs):
        twice = next(path for path in space if sum(path == parse_spec(each)[0] for each in specs) > 1)
        raise BadInput(f"--vary gives {twice} twice; write its values as one list")
    name = "-".join(["vary", *(path.rpartition(".")[2] for path in space)])
    values = {"base": base or DEFAULT_PLAN, "space": space, **changes}
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120)
    try:
        return sweep_of(values, name, hide(text))
    except BadInput as error:
        raise BadInput(f"--vary: {error}") from None


def parse_spec(text: str) -> tuple[str, Any]:
    """Return the field and, as a sweep file writes it, what it is varied by: a list of values, or a primitive.

    ``audit.search.epsilon=0.02,0.05`` or ``audit.search.beta=loguniform(0.25, 16)``.
    """
    path, separator, spec = (part.strip() for part in text.partition("="))
    if not separator or not spec or not all(path.split(".")):
        raise BadInput(
            f"--vary {hide(text)!r}: write it as path=value,value or path=primitive(…), e.g. "
            "--vary audit.search.epsilon=0.02,0.05,0.1"
        )
    call = CALL.fullmatch(spec)
    if not call:
        refuse_unfinished(path, spec)
    listed = parse_yaml(f"[{call[2] if call else spec}]", f"--vary {path}")
    return path, {call[1]: listed} if call else listed


def refuse_unfinished(path: str, spec: str) -> None:
    """Raise BadInput for a primitive whose brackets are not those of a call, which would be read as text."""
    begun = CALL_BEGUN.match(spec)
    if begun is None:
        return
    name, bracket = begun.groups()
    if name not in FORMS and not (bracket == "(" and did_you_mean(name, FORMS)):
        return
    if bracket == "(":
        closed = spec.count(")") >= spec.count("(")
        wrong = "something follows its closing bracket" if closed else "its closing bracket is missing"
    elif bracket or spec.endswith(")"):
        wrong = "its arguments stand in round brackets"
    else:
        return
    raise BadInput(f"--vary {path}: {hide(spec)!r} cannot be read: {wrong}; write it as {name}(…, …)")
