"""The table of all controls of a result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.judgement.rows import FAILED, Control
from orchestrator.judgement.wording import STATES, called, capital, reported
from orchestrator.report.grid import Column, Entry, Grid, grid, left, red


def controls_grid(controls: Sequence[Control], words: Callable[[str], str] = str) -> Grid:
    """Return all controls of a result, in its order; ``words``: names of attacks and methods as they are reported."""
    several = len({each.setting for each in controls}) > 1
    body = [
        [
            capital(called(each)),
            *([each.setting] if several else []),
            ", ".join(dict.fromkeys(words(name) for name in (each.subject, each.attack) if name)),
            Entry(STATES[each.state], tone=red(each.state == FAILED)),
            each.protects,
            reported(each, words),
        ]
        for each in controls
    ]
    columns = [left("control"), *([left("setting")] if several else []), left("of"), left("state"), left("protects")]
    return grid("controls", "Controls", [*columns, Column("why", "left", wrap=True, narrow="nothing")], body)
