"""Names and lists in the words of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.compared.rows import CompareResult, DifferenceRow


def name_of(run: CompareResult, row: DifferenceRow) -> str:
    """Return what a difference is of, with its setting and its sides where there are several."""
    setting = f"{row.setting}/" if len({each.setting for each in run.table}) > 1 else ""
    sides = f" ({row.second} − {row.first})" if len(run.pairs) > 1 else ""
    return f"{setting}{row.both}, {row.name}{sides}"


def listed(names: Sequence[str]) -> str:
    """Return a list in words."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
