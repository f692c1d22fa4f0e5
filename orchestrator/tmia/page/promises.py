"""The promised level in words, where null models show it broken: what is void then."""

from __future__ import annotations

from orchestrator.report.numbers import number
from orchestrator.report.rows import Estimate
from orchestrator.tmia.page.glossary import words
from orchestrator.tmia.page.reading import TmiaRun
from orchestrator.tmia.result.rows import TmiaCell

MOST_NAMED = 6


def void_lines(run: TmiaRun) -> list[str]:
    """Return one line on the cells of all settings that break the promise on null models; none where all keep it."""
    void = [row for row in run.result.table if row.void]
    if not void:
        return []
    several = len(run.settings) > 1
    names = [
        f"{words(row.attack)} × {words(row.selection)}{f' ({row.setting})' * several} {number(broken(row).value)}"
        for row in void[:MOST_NAMED]
    ]
    more = f" and {len(void) - MOST_NAMED} more" if len(void) > MOST_NAMED else ""
    where = "null models" if all(row.null_fpr_off for row in void) else "null models or the target’s own non-members"
    return [
        f"Promised rates did not hold on {where} for {', '.join(names)}{more} (promised {number(void[0].beta)}): "
        "their precision and coverage are void and must not be quoted"
    ]


def broken(row: TmiaCell) -> Estimate:
    """Return the rate that breaks the promise of a void cell."""
    return row.null_fpr if row.null_fpr_off else row.fpr
