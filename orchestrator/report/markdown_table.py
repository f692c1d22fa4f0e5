"""Tables and numbers in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from orchestrator.report.tables import short

Row = dict[str, Any]


def table(head: Sequence[str], body: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def span(row: Row, name: str) -> str:
    """Return ``0.703 [0.668, 0.738]``."""
    return f"{row[name]:.3f} [{row[f'{name}_low']:.3f}, {row[f'{name}_high']:.3f}]"


def p_value(value: float) -> str:
    """Return a p-value with three digits, or as smaller than .001."""
    return "< .001" if value < 0.001 else f"{value:.3f}"


def auc_cell(row: Row) -> str:
    """Return ``.703 [.668, .738]*``."""
    mark = "*" if row["above_chance"] else ""
    low, high = (short(row[f"auc_{side}"]) for side in ("low", "high"))
    return f"{short(row['auc'])} [{low}, {high}]{mark}"
