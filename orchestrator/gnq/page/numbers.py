"""Headlines, paired differences and what they amount to, as text and as entries of tables."""

from __future__ import annotations

from orchestrator.gnq.page.reading import clear
from orchestrator.gnq.result.paired import PairedRow
from orchestrator.gnq.result.rows import ArmRow, Onion
from orchestrator.judgement.estimate import Estimate
from orchestrator.report.chance import STAR
from orchestrator.report.grid import Entry
from orchestrator.report.numbers import entry, estimate, or_dash, small_p

UNCORRECTED = "by the interval, but not after Holm’s correction"


def headline(arm: ArmRow) -> Entry:
    """Return the headline AUC of an arm with its interval, marked where that lies above one half."""
    best = arm.headline
    return entry(best.auc, mark=STAR if best.above_chance else "") if best else entry(None)


def headline_words(arm: ArmRow) -> str:
    """Return the headline AUC of an arm with its interval, for a sentence."""
    return estimate(arm.headline.auc if arm.headline else None)


def change(row: PairedRow | None) -> str:
    """Return a paired difference with its interval."""
    return estimate(row.difference if row else None, signed=True)


def change_entry(row: PairedRow | None, level: float) -> Entry:
    """Return a paired difference, marked where it lies beyond zero, also after Holm's correction."""
    return entry(row.difference if row else None, signed=True, mark=STAR if clear(row, level) else "")


def onion_change(seen: Onion) -> Estimate:
    """Return by how much the share of fully exposed points changes, with an interval where the result holds one."""
    if seen.change.known or seen.before is None or seen.after.value is None:
        return seen.change
    return Estimate(seen.after.value - seen.before)


def holm_p(row: PairedRow) -> str:
    """Return the corrected p-value of a paired difference, a dash where there is none."""
    return or_dash(row.p_holm, small_p)


def standing(row: PairedRow, level: float, below: str, above: str, neither: str) -> str:
    """Return in words where a paired difference lies, and whether that stands after Holm's correction."""
    if row.difference.low is None:
        return "a single pool gives no interval"
    side = row.difference.side
    words = {-1: below, 1: above, 0: neither}[side]
    return words if row.clear(level) == side else f"{words} {UNCORRECTED}"
