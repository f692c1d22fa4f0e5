"""Figures of sweeps: precision, coverage and size of Q against the swept value, and against frozen layers (Fig. 3)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

from orchestrator.judgement.estimate import Estimate
from orchestrator.report.axes import is_logarithmic, value_axis
from orchestrator.report.result import SettingRow, look_up, own_setting
from orchestrator.report.style import DASHES, INK, MARKERS, MUTED, SERIES
from orchestrator.report.swept import Axes as Swept
from orchestrator.report.swept import Panel, panels
from orchestrator.tmia.page.numbers import unless_void
from orchestrator.tmia.result.rows import TmiaCell
from orchestrator.tmia.result.run import TmiaRun
from orchestrator.tmia.result.words import words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FROZEN = "transfer.n_frozen"
NAMES = {
    "alpha.quantile": "quantile α of the selection",
    "alpha.absolute": "threshold α of the selection",
    "alpha.size": "size asked of the selection",
    "beta": "level β",
    "recipe.epochs": "epochs",
    "split.train_size": "training points",
    "split.reference_models": "reference models",
}
ROWS = ("precision", "coverage", "candidates")
Line = Mapping[float, str]
"""Swept value → setting."""


def swept(run: TmiaRun) -> list[Panel]:
    """Return the quantities of which settings change one by a number, but for frozen layers; none for an audit.

    The plan's own value joins where one of the settings is the plan itself.
    """
    bare = run.result.bare_settings
    shared = set.intersection(*(set(entry.overrides) for entry in bare)) if bare else set()
    same = {path for path in shared if len({repr(entry.overrides[path]) for entry in bare}) == 1}
    settings = [
        SettingRow(
            setting=entry.setting,
            overrides={path: value for path, value in entry.overrides.items() if path not in same},
        )
        for entry in bare
        if entry.setting in run.settings and FROZEN not in entry.overrides
    ]
    own = own_setting(run.result.plan, settings) if settings else ""
    found = panels(run.result.plan, settings, own, Swept(NAMES)) if len(settings) > 1 else []
    return [_own_values(panel, {entry.setting: entry.overrides for entry in settings}) for panel in found]


def _own_values(panel: Panel, changes: Mapping[str, Mapping[str, Any]]) -> Panel:
    """Return a panel without settings at values that are not theirs: the plan's, where no setting is the plan."""
    kept = [
        (value, setting)
        for value, setting in zip(panel.values, panel.settings, strict=True)
        if not changes[setting] or value in changes[setting].values() or setting.endswith(f"={value:g}")
    ]
    return Panel(panel.axis, tuple(value for value, _ in kept), tuple(setting for _, setting in kept))


def frozen_lines(run: TmiaRun) -> dict[str, Line]:
    """Return the lines of Fig. 3: settings that differ in frozen layers alone, by the name that they share."""
    groups: dict[str, dict[int, str]] = {}
    for entry in run.result.bare_settings:
        count = entry.overrides.get(FROZEN, look_up(run.result.plan, FROZEN))
        if entry.setting in run.settings and isinstance(count, int):
            rest = repr(sorted((path, repr(value)) for path, value in entry.overrides.items() if path != FROZEN))
            groups.setdefault(rest, {})[count] = entry.setting
    lines: dict[str, Line] = {}
    for settings in groups.values():
        if len(settings) > 1:
            ordered = dict(sorted(settings.items()))
            name = _shared_name(list(ordered.values()))
            name = name if name not in lines else f"{name} ({len(lines) + 1})"
            lines[name] = {float(count): setting for count, setting in ordered.items()}
    return lines


def _shared_name(settings: Sequence[str]) -> str:
    """Return the name of settings without the frozen layers that stand in it: ``near`` of ``near/n_frozen=1``."""
    return re.split(r"[/ ,]*n_frozen", settings[0])[0] or "student"


def frozen_layers(run: TmiaRun) -> Figure | None:
    """Draw precision and coverage against frozen layers, a line a student domain, a column an attack of the verdict."""
    lines = frozen_lines(run)
    columns = {attack: {name: (attack, line) for name, line in lines.items()} for attack in run.judges}
    titles = {words(attack): drawn for attack, drawn in columns.items()}
    return _grid(run, titles, dict.fromkeys(titles, "frozen layers"), "") if lines and columns else None


def sweep_curves(run: TmiaRun) -> Figure | None:
    """Draw precision, coverage and |Q| against every swept value, a line an attack of the verdict."""
    found = swept(run)
    columns: dict[str, dict[str, tuple[str, Line]]] = {}
    axes: dict[str, str] = {}
    for panel in found:
        line = dict(zip(panel.values, panel.settings, strict=True))
        columns[panel.axis] = {words(attack): (attack, line) for attack in run.judges}
        axes[panel.axis] = panel.axis
    return _grid(run, columns, axes, run.main_setting) if found and run.judges else None


def _grid(
    run: TmiaRun, columns: Mapping[str, Mapping[str, tuple[str, Line]]], axes: Mapping[str, str], own: str
) -> Figure:
    """Draw one column of three panels for each entry of ``columns``: label → (attack, line)."""
    figure = Figure(figsize=(2.9 * len(columns) + 0.8, 6.0), layout="constrained")
    grid = figure.subplots(len(ROWS), len(columns), sharex="col", sharey="row", squeeze=False)
    for place, (title, lines) in enumerate(columns.items()):
        values = tuple(sorted({value for _, line in lines.values() for value in line}))
        logarithmic = is_logarithmic(values)
        for panel, name in zip(grid[:, place], ROWS, strict=True):
            for index, (label, (attack, line)) in enumerate(lines.items()):
                _line(panel, run, attack, line, name, label, index)
            value_axis(panel, values, logarithmic=logarithmic)
            for value in {value for _, line in lines.values() for value, setting in line.items() if setting == own}:
                panel.axvline(value, color=MUTED, linewidth=0.7, alpha=0.6)
        if title != axes[title]:
            grid[0, place].set_title(title)
        grid[-1, place].set_xlabel(axes[title])
        _chance(grid[0, place], run)
        grid[-1, place].set_ylim(bottom=0)
    for panel, name in zip(grid[:, 0], ROWS, strict=True):
        panel.set_ylabel("|Q|" if name == "candidates" else name)
    handles, names = grid[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=4)
    return figure


def _line(axes: Axes, run: TmiaRun, attack: str, line: Line, name: str, label: str, index: int) -> None:
    """Draw one rate (with intervals) or a count along a line of settings; undefined rates are left out."""
    cells = {value: run.cell(setting, run.main_selection, attack) for value, setting in line.items()}
    found = {value: quantity(row, name) for value, row in cells.items() if row}
    known = {value: each for value, each in found.items() if each.known}
    look: dict[str, Any] = {
        "color": SERIES[index % len(SERIES)],
        "marker": MARKERS[index % len(MARKERS)],
        "linestyle": DASHES[index % len(DASHES)],
    }
    height = np.array(list(known.values()), dtype=float)
    ends = np.array([each.errors for each in known.values()]).T if name != "candidates" and known else None
    axes.errorbar(list(known), height, yerr=ends, label=label, linewidth=1.2, elinewidth=0.8, markersize=4.5, **look)


def quantity(row: TmiaCell, name: str) -> Estimate:
    """Return precision or coverage of a cell, not defined where they are void, or its number of candidates."""
    if name == "candidates":
        return Estimate(row.candidates)
    return unless_void(row, row.precision if name == "precision" else row.coverage)


def _chance(axes: Axes, run: TmiaRun) -> None:
    """Mark the precision of answering at random."""
    expected = next((row.chance for row in run.result.table if row.chance is not None), None)
    if expected is not None:
        axes.axhline(expected, color=INK, linewidth=0.9, linestyle=(0, (4, 2)))
