"""Numbers that must be what an audit promises where nothing was learnt: AUCs of one half, rates of false calls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from audits.statistics.controls import interval_p, rate_p

LEVEL = 0.95


@dataclass(frozen=True)
class Check:
    """A number that must be ``promised``, with its interval and the p-value of that; ``what`` and ``where`` name it."""

    what: str
    where: str
    value: float
    low: float
    high: float
    promised: float
    p: float


@dataclass(frozen=True)
class Found:
    """What an audit shows under the null hypothesis; ``broken``: what else was promised and did not hold, in words."""

    checks: tuple[Check, ...]
    broken: tuple[str, ...]
    power: str


def area(row: Mapping[str, Any], metric: str, what: str, units: int) -> Check:
    """Return the check that an AUC is one half."""
    value, low, high = row[metric], row[f"{metric}_low"], row[f"{metric}_high"]
    return Check(what, place(row), value, low, high, 0.5, interval_p(value, low, high, 0.5, LEVEL, max(1, units - 1)))


def rate(row: Mapping[str, Any], metric: str, what: str, promised: float, units: int) -> Check:
    """Return the check that a rate is at most what was promised: lower is no broken promise, and no miss."""
    value, low, high = row[metric], row[f"{metric}_low"], row[f"{metric}_high"]
    high = max(high, promised)
    return Check(what, place(row), value, low, high, promised, rate_p(value, low, promised, LEVEL, max(1, units - 1)))


def place(row: Mapping[str, Any]) -> str:
    """Return the cell of a row in words."""
    names = ("setting", "unlearner", "arm", "selection", "group", "attack", "shadows")
    return ", ".join(str(row[name]) for name in names if row.get(name) and row[name] != "base")


def ends(row: Mapping[str, Any], metric: str) -> str:
    """Return a number with its interval."""
    return f"{row[metric]:.3f} [{row[f'{metric}_low']:.3f}, {row[f'{metric}_high']:.3f}]"


def exposed(count: int) -> Iterator[str]:
    """Yield a line where points were named."""
    if count:
        yield f"{count} points that were never trained on are exposed"
