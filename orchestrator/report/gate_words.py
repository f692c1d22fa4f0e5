"""The outcome of a release gate in the words of the field, for the first screen of a page."""

from __future__ import annotations

from collections.abc import Callable

from orchestrator.judgement.gate_result import FAILED, INCONCLUSIVE, PASSED, GateResult, LimitResult
from orchestrator.judgement.wording import ACCESS, METRICS
from orchestrator.report.numbers import VOID, number

MOST_LIMITS = 3
ORDER = (FAILED, INCONCLUSIVE, PASSED)
ENDS = {"_low": "lower end of ", "_high": "upper end of "}

Named = Callable[[str], str]
"""Returns the name of a component as the page of its kind writes it."""


def gate_words(gate: GateResult, named: Named) -> str:
    """Return how the limits came out, the worst outcomes first."""
    ordered = sorted(gate.limits, key=lambda limit: ORDER.index(limit.outcome))
    told = [limit_words(limit, named) for limit in ordered[:MOST_LIMITS]]
    if more := len(ordered) - len(told):
        told.append(f"{more} more")
    return "; ".join(told)


def limit_words(limit: LimitResult, named: Named) -> str:
    """Return what a limit allows, what was found and how it came out."""
    given = limit.limit.rpartition("=")[2].partition(".")[2]
    most = number(limit.at_most, decimals=max(3, len(given) if given.isdecimal() else 0))
    value = VOID.text if limit.void else number(limit.value, decimals=limit.decimals)
    found = f"found {value} ({limit.outcome})"
    return f"{metric_words(limit, named)} at most {most}, {found}"


def metric_words(limit: LimitResult, named: Named) -> str:
    """Return what a limit is on: "every AUC", "lower end of every AUC", "AUC from confidences", "AUC of RMIA"."""
    metric, place = limit.metric, limit.name.removesuffix(limit.metric).rstrip(".")
    end = next((end for end in ENDS if metric.endswith(end)), "")
    name = metric.removesuffix(end).removeprefix("found_")
    which = "every " if not place else "the " if end else ""
    said = f"{ENDS.get(end, '')}{which}{METRICS.get(name) or name.replace('_', ' ')}"
    if not place:
        return said
    if place in ACCESS:
        return f"{said} from {ACCESS[place]}"
    return f"{said} of {', '.join(map(named, place.split('.')))}"
