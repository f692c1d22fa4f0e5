"""Rates of a TMIA report: like other numbers, but "undefined" where they are 0/0."""

from __future__ import annotations

from orchestrator.judgement.estimate import Estimate, Span
from orchestrator.judgement.wording import DASH
from orchestrator.report.grid import Entry, Tone, red
from orchestrator.report.numbers import VOID, entry
from orchestrator.tmia.result.rows import TmiaCell

UNDEFINED = Entry("undefined")


def rate(found: Estimate) -> str:
    """Return a rate with its interval; "undefined" for 0/0."""
    return str(rate_entry(found))


def rate_entry(found: Estimate, *, mark: str = "", tone: Tone = "", tooltip: str = "") -> Entry:
    """Return a rate with its interval as an entry of a table; "undefined" for 0/0."""
    return entry(found, mark=mark, tone=tone, tooltip=tooltip) if found.known else UNDEFINED


def quoted(row: TmiaCell, found: Estimate, *, tone: Tone = "", tooltip: str = "") -> Entry:
    """Return a rate of a cell that rests on its promise, precision or coverage; "void" where that is broken."""
    return VOID if row.void else rate_entry(found, tone=tone, tooltip=tooltip)


def unless_void(row: TmiaCell, rate: Estimate) -> Estimate:
    """Return a rate of a cell that rests on its promise, not defined where that is broken."""
    return Estimate() if row.void else rate


def null_rate(row: TmiaCell) -> Entry:
    """Return the false-positive rate on null models, red where it breaks the promise.

    A dash for attacks that promise no rate, and without models.
    """
    if row.promised is None or not row.null_models:
        return Entry(DASH)
    counted = f"{row.null_false_positives} of {row.null_pairs} pairs"
    return rate_entry(row.null_fpr, tone=red(row.null_fpr_off), tooltip=counted)


def over_targets(span: Span) -> str:
    """Return the interval over targets alone, for a tooltip; nothing where there is none."""
    return "" if span.low is None or span.high is None else f"over targets alone [{span.low:.3f}, {span.high:.3f}]"
