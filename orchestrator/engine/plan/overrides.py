"""``--set a.b=c``: change single values of a plan before it is checked."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from audits.credentials import hide
from audits.errors import BadInput, did_you_mean
from orchestrator.engine.plan.files import DEFAULT_PLAN, parse_yaml, shipped_plan

# A new name here makes the settings of the former component meaningless: they are dropped with it.
NAMED_SETTINGS: dict[tuple[str, ...], str] = {
    ("model", "name"): "settings",
    ("shadow_model", "name"): "settings",
}


def parse_override(text: str) -> tuple[str, Any]:
    """Return (dotted path, value) of ``text``, e.g. ``audit.search.beta=2``; the value is read as YAML."""
    path, separator, value = text.partition("=")
    if not separator or not all(path.strip().split(".")):
        raise BadInput(f"--set {hide(text)!r}: write it as path=value, e.g. --set split.shadows=32")
    return path.strip(), parse_yaml(value, f"--set {path.strip()}")


def apply_overrides(raw: Mapping[str, Any], values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return a copy of the plan mapping ``raw`` in which each dotted path has its new value.

    Entries of a list are named by index (``unlearning.1.epochs``) or, for unlearning methods, by method or label
    (``unlearning.scrub.epochs``); ``variants.NAME.audit.mode`` is the field ``audit.mode`` of a variant. Keys that do
    not exist are left to the plan's own check, which knows every field. Raises ``BadInput`` when a path leads through a
    value that is not a section or to a list entry that is not there.
    """
    plan = copy.deepcopy(dict(raw))
    for path, value in values:
        parts = parts_of(path)
        if parts[0] == "unlearning" and len(parts) > 1 and "unlearning" not in plan:
            plan["unlearning"] = shipped_plan(DEFAULT_PLAN)["unlearning"]
        place(plan, parts, copy.deepcopy(value))
    return plan


def parts_of(path: str) -> list[str]:
    """Return the steps of a dotted path; below ``variants.NAME`` the rest is one field, as a variant writes it."""
    parts = path.split(".")
    return [*parts[:2], ".".join(parts[2:])] if parts[0] == "variants" and len(parts) > 3 else parts


def place(plan: dict[str, Any], parts: list[str], value: Any) -> None:
    """Put ``value`` at the path ``parts`` of ``plan``, in place; sections on the way are made."""
    node: Any = plan
    for depth, part in enumerate(parts[:-1]):
        walked = ".".join(parts[:depth])
        if isinstance(node, list):
            node = node[entry_index(node, part, walked)]
        elif node.get(part) is None:
            node[part] = {}
            node = node[part]
        else:
            node = node[part]
        if not isinstance(node, dict | list):
            here = ".".join(parts[: depth + 1])
            raise BadInput(f"--set {'.'.join(parts)}: {here} is {node!r}, not a section; use --set {here}=…")
    last = parts[-1]
    if isinstance(node, list):
        node[entry_index(node, last, ".".join(parts[:-1]))] = value
        return
    dependent = NAMED_SETTINGS.get(tuple(parts))
    if dependent and node.get(last) != value:
        node.pop(dependent, None)
    if last == "method" and parts[0] == "unlearning" and node.get(last) != value:
        node.clear()
    node[last] = value


def entry_index(entries: list[Any], part: str, path: str) -> int:
    """Return the index of the list entry that ``part`` names: a number, or the method or label of the entry."""
    names = {
        str(entry.get("as", str(entry.get("method")).rpartition(":")[2])): index
        for index, entry in enumerate(entries)
        if isinstance(entry, dict)
    }
    if part in names:
        return names[part]
    if part.isdecimal() and int(part) < len(entries):
        return int(part)
    allowed = f"0 to {len(entries) - 1}" if entries else "none, the list is empty"
    known = f" or {', '.join(names)}" if names else ""
    raise BadInput(f"--set {path}.{part}: no such entry{did_you_mean(part, names)}; allowed: {allowed}{known}")
