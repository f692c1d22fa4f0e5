"""Numbers of a disclosure report: rates and differences without a leading zero, with intervals where there are some."""

from __future__ import annotations

from orchestrator.report.disclosure.reading import clear, side
from orchestrator.report.reading import Row, small_p

DASH = "–"
ENDS = ("low", "high")
"""The interval of rows that hold one number only."""
UNCORRECTED = "by its interval, but not after Holm’s correction"


def number(value: float | None, *, signed: bool = False) -> str:
    """Return ``.642``, ``−.012``, or with a sign ``+.012``; a dash where there is none."""
    if value is None:
        return DASH
    text = f"{abs(value):.3f}"
    mark = "" if not float(text) else "−" if value < 0 else "+" if signed else ""
    return mark + text.removeprefix("0")


def estimate(row: Row | None, name: str, *, signed: bool = False, ends: tuple[str, str] | None = None) -> str:
    """Return ``.642 [.601, .683]`` of a row's field; without an interval the number alone, a dash without a number."""
    if row is None or row[name] is None:
        return DASH
    low, high = (row[end] for end in ends or (f"{name}_low", f"{name}_high"))
    if low is None or high is None:
        return number(row[name], signed=signed)
    return f"{number(row[name], signed=signed)} [{number(low, signed=signed)}, {number(high, signed=signed)}]"


def headline(arm: Row | None) -> str:
    """Return the headline AUC of an arm with its interval."""
    return estimate(arm["headline"] if arm else None, "auc", ends=ENDS)


def change(row: Row | None) -> str:
    """Return a paired difference with its interval."""
    return estimate(row, "difference", signed=True, ends=ENDS)


def onion_change(seen: Row) -> str:
    """Return by how much the share of fully exposed points changes, with an interval where the result holds one."""
    if "change" in seen:
        return estimate(seen, "change", signed=True)
    known = None not in (seen["before"], seen["after"])
    return number(seen["after"] - seen["before"], signed=True) if known else DASH


def holm_mark(row: Row | None, level: float) -> str:
    """Return a star where a paired difference lies beyond zero, also after Holm's correction."""
    return "*" if clear(row, level) else ""


def p_words(row: Row) -> str:
    """Return the corrected p-value of a paired difference, a dash where there is none."""
    return DASH if row["p_holm"] is None else small_p(row["p_holm"])


def standing(row: Row, level: float, below: str, above: str, neither: str) -> str:
    """Return in words where a paired difference lies, and whether that stands after Holm's correction."""
    if row["low"] is None:
        return "one pool gives no interval"
    words = {-1: below, 1: above, 0: neither}[side(row)]
    return words if clear(row, level) == side(row) else f"{words} {UNCORRECTED}"
