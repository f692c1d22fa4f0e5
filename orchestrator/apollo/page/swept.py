"""Quantities that a sweep of Apollo varies: α and β count as their ratio, steps at a fixed radius as steps."""

from __future__ import annotations

from orchestrator.apollo.page.reading import ApolloRun
from orchestrator.apollo.result.rows import AttackRow
from orchestrator.report import swept
from orchestrator.report.swept import Axes, Overrides, Panel, Read

ALPHA, BETA, SHADOWS = "audit.search.alpha", "audit.search.beta", "audit.search.shadows"
STEPS, EPSILON = "audit.search.steps", "audit.search.epsilon"
STEPS_AT_RADIUS = f"{STEPS} at a fixed final radius"
NAMES = {
    "search.beta": "β/α",
    "search.shadows": "shadow models m",
    "search.epsilon": "ε (radius per step)",
    "search.steps": "steps T",
    "search.steps at a fixed final radius": "steps T (ε·T fixed)",
    "split.forget": "share forgotten",
    "split.forget.fraction": "share of the classes forgotten",
    "split.shadows": "shadow models m",
}


def quantity(overrides: Overrides) -> str:
    """Return the one quantity that a setting changes, or nothing."""
    paths = set(overrides)
    if paths == {STEPS, EPSILON}:
        return STEPS_AT_RADIUS
    return BETA if paths and paths <= {ALPHA, BETA} else swept.single_field(overrides)


def number(name: str, read: Read) -> float | None:
    """Return the number that a setting gives to a quantity; null shadows are all of them."""
    path = {STEPS_AT_RADIUS: STEPS}.get(name, name)
    if path == SHADOWS and read(path) is None:
        path = "split.shadows"
    found = swept.own_number(path, read)
    return found / float(read(ALPHA) or 1.0) if found is not None and path == BETA else found


def panels(run: ApolloRun) -> list[Panel]:
    """Return the swept quantities of a run, none for an audit."""
    return swept.panels(run.result.plan, run.result.settings, run.result.own_setting, Axes(NAMES, quantity, number))


def rows_along(run: ApolloRun, panel: Panel, unlearner: str, attack: str) -> list[tuple[float, AttackRow]]:
    """Return (swept value, table row) along a panel, where the row exists."""
    return [
        (value, row)
        for value, setting in zip(panel.values, panel.settings, strict=True)
        for row in run.rows(setting)
        if row.unlearner == unlearner and row.attack == attack
    ]
