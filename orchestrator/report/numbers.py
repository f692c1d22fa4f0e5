"""Numbers, rates and intervals as text."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.judgement.estimate import Estimate, Span
from orchestrator.judgement.wording import DASH
from orchestrator.report.grid import Entry, Tone

VOID = Entry("void", tone="miss", tooltip="the promised rate did not hold: must not be quoted")
"""In the place of a number that rests on a promise which was broken."""


def number(value: float | None, *, signed: bool = False, decimals: int = 3) -> str:
    """Return ``.642``, ``−.012``, or with a sign ``+.012``; a dash where there is none."""
    if value is None or value != value:
        return DASH
    text = f"{abs(value):.{decimals}f}"
    mark = "" if not float(text) else "−" if value < 0 else "+" if signed else ""
    return mark + text.removeprefix("0")


def bounds(found: Estimate | Span | None, *, signed: bool = False) -> str:
    """Return an interval as ``[.601, .683]``, nothing where there is none."""
    if found is None or found.low is None or found.high is None:
        return ""
    return f"[{number(found.low, signed=signed)}, {number(found.high, signed=signed)}]"


def estimate(found: Estimate | None, *, signed: bool = False) -> str:
    """Return ``.642 [.601, .683]``; without an interval the number alone, a dash without a number."""
    return str(entry(found, signed=signed))


def entry(found: Estimate | None, *, signed: bool = False, mark: str = "", tone: Tone = "", tooltip: str = "") -> Entry:
    """Return an estimate as an entry of a table; what a star marks is shown as beyond chance, too."""
    if found is None or not found.known:
        return Entry(DASH)
    beside = bounds(found, signed=signed)
    return Entry(number(found.value, signed=signed), beside, mark, "above" if mark and not tone else tone, tooltip)


def percent(value: float | None, digits: int = 1) -> str:
    """Return a rate as a percentage, a dash where there is none."""
    return DASH if value is None or value != value else f"{value * 100:.{digits}f}\N{NO-BREAK SPACE}%"


def small_p(value: float) -> str:
    """Return a p-value with as many digits as it is worth."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def or_dash(value: float | None, text: Callable[[float], str]) -> str:
    """Return a number as ``text`` writes it, a dash where there is none."""
    return DASH if value is None else text(value)
