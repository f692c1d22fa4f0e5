"""What a sweep varies: settings grouped by the quantity they change, each with its number."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.report.reading import Row, Run, look_up

ALPHA, BETA, SHADOWS = "audit.search.alpha", "audit.search.beta", "audit.search.shadows"
STEPS, EPSILON = "audit.search.steps", "audit.search.epsilon"
STEPS_AT_RADIUS = f"{STEPS} at a fixed final radius"
SEED = "seed"
AXES = {
    BETA: "β/α",
    SHADOWS: "shadow models m",
    EPSILON: "ε (radius per step)",
    STEPS: "steps T",
    STEPS_AT_RADIUS: "steps T (ε·T fixed)",
    "split.forget": "share forgotten",
    "split.forget.fraction": "share of the classes forgotten",
    "split.shadows": "shadow models m",
    "model.settings.dropout": "dropout rate",
    "recipe.dropout": "dropout rate",
    "recipe.label_smoothing": "label smoothing",
    "recipe.noise_multiplier": "DP-SGD noise σ",
    "recipe.target_epsilon": "DP-SGD ε",
}
NUMBERED = re.compile(r"(?P<name>.+)=(?P<value>[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?)")


@dataclass(frozen=True)
class Panel:
    """One swept quantity: its axis label and the settings along it, sorted by value."""

    axis: str
    values: tuple[float, ...]
    settings: tuple[str, ...]

    def rows(self, run: Run, unlearner: str, attack: str) -> list[tuple[float, Row]]:
        """Return (swept value, table row) along the panel, where the row exists."""
        found = []
        for value, setting in zip(self.values, self.settings, strict=True):
            rows = [row for row in run.rows(setting) if row["unlearner"] == unlearner and row["attack"] == attack]
            found += [(value, row) for row in rows]
        return found


def panels(run: Run) -> list[Panel]:
    """Return the swept quantities of a run, none for an audit.

    A setting that changes one field by a number stands on the panel of that field (α and β count as their ratio, T and
    ε together as T); any other whose name ends in ``=NUMBER`` stands on the panel of the part before. The plan's own
    value joins where it is a number. Seeds are repetitions, not a quantity.
    """
    by_field, placed = _by_field(run)
    by_name = _by_name(run, placed)
    found = []
    for axis, settings in (*by_field.items(), *by_name.items()):
        if len(settings) > 1:
            values = sorted(settings)
            found.append(Panel(axis, tuple(values), tuple(settings[value] for value in values)))
    return found


def _by_field(run: Run) -> tuple[dict[str, dict[float, str]], set[str]]:
    """Return axis → value → setting of the settings that change one field, and which settings these are."""
    found: dict[str, dict[float, str]] = {}
    placed: set[str] = set()
    for entry in run.result["settings"]:
        path = _swept_path(entry["overrides"])
        value = _number(run, entry["overrides"], path) if path else None
        if value is not None:
            found.setdefault(path, {})[value] = str(entry["setting"])
            placed.add(str(entry["setting"]))
    for path, settings in found.items():
        own = _number(run, {}, path)
        if own is not None:
            settings.setdefault(own, run.main_setting)
    return {AXES.get(path, path.removeprefix("audit.")): settings for path, settings in found.items()}, placed


def _by_name(run: Run, placed: set[str]) -> dict[str, dict[float, str]]:
    """Return axis → value → setting of the other settings that are named ``quantity=NUMBER``."""
    groups: dict[str, dict[float, Mapping[str, Any]]] = {}
    for entry in run.result["settings"]:
        named = NUMBERED.fullmatch(str(entry["setting"]))
        if named and named["name"] != SEED and str(entry["setting"]) not in placed:
            groups.setdefault(named["name"], {})[float(named["value"])] = entry
    found = {}
    for name, entries in groups.items():
        settings = {value: str(entry["setting"]) for value, entry in entries.items()}
        shared = set.intersection(*(set(entry["overrides"]) for entry in entries.values()))
        for path in sorted(shared):
            own = look_up(run.plan, path)
            same = all(entry["overrides"][path] == value for value, entry in entries.items())
            if same and isinstance(own, int | float) and not isinstance(own, bool):
                settings.setdefault(float(own), run.main_setting)
        found[name] = settings
    return found


def _swept_path(overrides: Mapping[str, Any]) -> str:
    """Return the one quantity that overrides change, or nothing."""
    paths = set(overrides)
    if paths == {STEPS, EPSILON}:
        return STEPS_AT_RADIUS
    if paths and paths <= {ALPHA, BETA}:
        return BETA
    return paths.pop() if len(paths) == 1 and paths != {SEED} else ""


def _number(run: Run, overrides: Mapping[str, Any], path: str) -> float | None:
    """Return the number that a setting gives to a swept quantity (β over α; null shadows are all of them)."""

    def value(name: str) -> Any:
        return overrides.get(name, look_up(run.plan, name))

    number = value(STEPS if path == STEPS_AT_RADIUS else path)
    if path == SHADOWS and number is None:
        number = value("split.shadows")
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    return float(number) / float(value(ALPHA) or 1.0) if path == BETA else float(number)
