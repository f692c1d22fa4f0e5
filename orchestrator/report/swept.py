"""Quantities that the settings of a run vary, each with its values in order."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from orchestrator.report.result import SettingRow, look_up

SEED = "seed"
AXES = {
    "model.settings.dropout": "dropout rate",
    "recipe.dropout": "dropout rate",
    "recipe.label_smoothing": "label smoothing",
    "recipe.noise_multiplier": "DP-SGD noise σ",
    "recipe.target_epsilon": "DP-SGD ε",
}
NUMBERED = re.compile(r"(?P<name>.+)=(?P<value>[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?)")
Overrides = Mapping[str, Any]
Read = Callable[[str], Any]
"""The value of a dotted path in a setting's plan."""


@dataclass(frozen=True)
class Panel:
    """One swept quantity: its axis label and the settings along it, sorted by value."""

    axis: str
    values: tuple[float, ...]
    settings: tuple[str, ...]


def single_field(overrides: Overrides) -> str:
    """Return the one field that a setting changes, or nothing; a seed is a repetition, not a quantity."""
    (path, *more) = overrides or ("",)
    return "" if more or path == SEED else path


def own_number(quantity: str, read: Read) -> float | None:
    """Return the number at the path ``quantity`` of a setting's plan; None for what is no number."""
    value = read(quantity)
    return None if isinstance(value, bool) or not isinstance(value, int | float) else float(value)


@dataclass(frozen=True)
class Axes:
    """Quantities along an axis: the one that overrides change, its number, and its words.

    ``names``: path without ``audit.`` → words, beside those of ``AXES``.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    quantity: Callable[[Overrides], str] = single_field
    number: Callable[[str, Read], float | None] = own_number

    def label(self, quantity: str) -> str:
        """Return how a quantity is called at its axis."""
        short = quantity.removeprefix("audit.")
        return self.names.get(short) or AXES.get(short, short)


def panels(plan: Mapping[str, Any], settings: Sequence[SettingRow], own: str, axes: Axes) -> list[Panel]:
    """Return the swept quantities of the settings of ``plan``, none for an audit.

    A setting that changes one quantity by a number stands on the panel of that quantity; any other whose name ends in
    ``=NUMBER`` stands on the panel of the part before. The plan's own value joins, as that of the setting ``own``,
    where it is a number and the run has such a setting ("" for none).
    """
    by_field, placed = _by_field(plan, settings, own, axes)
    by_name = _by_name(plan, [entry for entry in settings if entry.setting not in placed], own)
    found = []
    for quantity, along in (*by_field.items(), *by_name.items()):
        if len(along) > 1:
            values = sorted(along)
            found.append(Panel(axes.label(quantity), tuple(values), tuple(along[value] for value in values)))
    return found


def _by_field(
    plan: Mapping[str, Any], settings: Sequence[SettingRow], own: str, axes: Axes
) -> tuple[dict[str, dict[float, str]], set[str]]:
    """Return quantity → value → setting of the settings that change one quantity, and which settings these are."""

    def number(quantity: str, overrides: Overrides) -> float | None:
        return axes.number(quantity, lambda path: overrides.get(path, look_up(plan, path)))

    found: dict[str, dict[float, str]] = {}
    placed: set[str] = set()
    for entry in settings:
        quantity = axes.quantity(entry.overrides)
        value = number(quantity, entry.overrides) if quantity else None
        if value is not None:
            found.setdefault(quantity, {})[value] = entry.setting
            placed.add(entry.setting)
    for quantity, along in found.items():
        value = number(quantity, {})
        if own and value is not None:
            along.setdefault(value, own)
    return found, placed


def _by_name(plan: Mapping[str, Any], settings: Sequence[SettingRow], own: str) -> dict[str, dict[float, str]]:
    """Return quantity → value → setting of the settings that are named ``quantity=NUMBER``."""
    groups: dict[str, dict[float, SettingRow]] = {}
    for entry in settings:
        named = NUMBERED.fullmatch(entry.setting)
        if named and named["name"].rpartition(", ")[2] != SEED:
            groups.setdefault(named["name"], {})[float(named["value"])] = entry
    found = {}
    for name, entries in groups.items():
        along = {value: entry.setting for value, entry in entries.items()}
        shared = set.intersection(*(set(entry.overrides) for entry in entries.values()))
        for path in sorted(shared):
            same = all(entry.overrides[path] == value for value, entry in entries.items())
            value = own_number(path, lambda path: look_up(plan, path))
            if own and same and value is not None:
                along.setdefault(value, own)
        found[name] = along
    return found
