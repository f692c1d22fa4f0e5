"""The release gate: ``--fail-above METRIC=VALUE`` turns a result into an exit code."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audits.errors import BadInput, did_you_mean

OWN = re.compile(r"python:[\w.]+:\w+")
INSIDE = "\0"
"""In the place of a dot inside a name."""


@dataclass(frozen=True)
class Line:
    """A line of a result that a limit can look at: its ``place`` by name, its numbers, and how messages name it.

    ``worst``: it takes part in the worst line of all, which a limit without a place looks at; ``access``: so it does in
    the worst line of this access and of stronger ones ("": of none).
    """

    place: tuple[str, ...]
    values: Mapping[str, float | None]
    where: str
    worst: bool
    access: str = ""


def no_refusal(plan: Any) -> str:
    """Return no reason why limits without a place could not be held by a result of ``plan``."""
    return ""


def nothing_lost(plan: Any, document: Mapping[str, Any]) -> list[Line]:
    """Return no line that a result lacks."""
    return []


def no_control(plan: Any, document: Mapping[str, Any], lines: Sequence[Line]) -> list[str]:
    """Return no control that failed."""
    return []


@dataclass(frozen=True)
class Headline:
    """What limits can name in results of a kind of audit.

    ``example``: a limit, for messages; ``summary``: metrics of the worst line, ``metrics``: of a named one; ``parts``:
    the words for the parts of a line's name (``("unlearner", "attack")``). ``names(plan)`` returns part → the names
    that the plan has, ``lines(plan, document)`` the lines of a result. ``refusal(plan)``: why the worst line cannot be
    asked for, or "". ``lost(plan, document)``: the lines that a result lacks, because an attack failed.
    ``failed_controls(plan, document, lines)``: the controls without which ``lines`` say nothing and that failed, in
    words. ``accesses``: levels of access that a limit can name, weakest first. ``undefined_fails``: a line of which the
    metric is not defined is worse than all others; else it is left out.
    """

    example: str
    summary: tuple[str, ...]
    metrics: tuple[str, ...]
    parts: tuple[str, ...]
    names: Callable[[Any], Mapping[str, Sequence[str]]]
    lines: Callable[[Any, Mapping[str, Any]], Sequence[Line]]
    refusal: Callable[[Any], str] = no_refusal
    lost: Callable[[Any, Mapping[str, Any]], Sequence[Line]] = nothing_lost
    failed_controls: Callable[[Any, Mapping[str, Any], Sequence[Line]], Sequence[str]] = no_control
    accesses: tuple[str, ...] = ()
    undefined_fails: bool = True


@dataclass(frozen=True)
class Gate:
    """A limit on one metric of the line called ``place``, else of the worst line, within ``access`` if one is named."""

    text: str
    metric: str
    limit: float
    place: tuple[str, ...] | None = None
    access: str = ""


def parse_gate(text: str, headline: Headline) -> Gate:
    """Return the gate that ``METRIC=VALUE`` describes; raises ``BadInput`` on unknown metrics and odd values."""
    name, limit = name_and_limit(text, headline.example)
    count = len(headline.parts)
    parts = [part.replace(INSIDE, ".") for part in OWN.sub(without_dots, name).rsplit(".", count)]
    access, _, metric = name.rpartition(".")
    if access in headline.accesses and metric in headline.summary:
        return Gate(text, metric, limit, access=access)
    allowed = headline.summary if len(parts) == 1 else headline.metrics
    if len(parts) not in (1, count + 1) or parts[-1] not in allowed:
        place = ".".join(part.upper() for part in headline.parts)
        within = f", one of these within an access ({', '.join(headline.accesses)})" if headline.accesses else ""
        raise BadInput(
            f"--fail-above {text!r}: unknown metric {name!r}{did_you_mean(parts[-1], allowed)}; allowed: "
            f"{', '.join(headline.summary)}{within}, or {place}.METRIC with one of {', '.join(headline.metrics)}"
        )
    return Gate(text, parts[-1], limit, tuple(parts[:-1]) or None)


def without_dots(name: re.Match[str]) -> str:
    """Return the name of a user's code with its dots marked as no ends of parts."""
    return name[0].replace(".", INSIDE)


def name_and_limit(text: str, example: str) -> tuple[str, float]:
    """Return name and value of ``METRIC=VALUE``; raises ``BadInput``, with an ``example``, for anything else."""
    name, separator, value = text.partition("=")
    if not separator:
        raise BadInput(f"--fail-above {text!r}: write it as METRIC=VALUE, e.g. --fail-above {example}")
    try:
        limit = float(value)
    except ValueError:
        limit = math.nan
    if not 0 <= limit < 1:
        raise BadInput(f"--fail-above {text!r}: the value must be a number from 0 up to, but not, 1")
    return name, limit


def gates_of(texts: Sequence[str], headline: Headline, plan: Any) -> list[Gate]:
    """Return the gates of ``texts``; refuses, before any work is done, those that a result of ``plan`` cannot hold."""
    gates = [parse_gate(text, headline) for text in texts]
    names = headline.names(plan)
    for gate in gates:
        for part, name in zip(headline.parts, gate.place or (), strict=False):
            if name not in names[part]:
                raise BadInput(
                    f"--fail-above {gate.text!r}: {part} {name!r}{did_you_mean(name, names[part])} is not in the "
                    f"plan: {', '.join(names[part])}"
                )
        if part := next((part for part, own in names.items() if gate.access in own), ""):
            raise BadInput(f"--fail-above {gate.text!r}: {gate.access!r} is an access and an {part}; rename the {part}")
        if gate.place is None and (reason := headline.refusal(plan)):
            raise BadInput(f"--fail-above {gate.text!r}: {reason}")
    return gates


def failures(gates: Sequence[Gate], headline: Headline, plan: Any, document: Mapping[str, Any]) -> list[str]:
    """Return lines on every gate that a result does not pass.

    What was not measured is not passed, nor is anything beside a control that failed: the gate is then inconclusive.
    """
    lines, lost = headline.lines(plan, document), headline.lost(plan, document)
    found = []
    for gate in gates:
        counted = looked_at(gate, headline, lines)
        if absent := looked_at(gate, headline, lost):
            what = ", ".join(line.where for line in absent)
            found.append(f"gate {gate.text}: inconclusive: no result of {what}; see the warnings")
        failed = headline.failed_controls(plan, document, counted)
        found += [f"gate {gate.text}: inconclusive: control {control}" for control in failed]
        if (counted or not absent) and (text := failure(gate, headline, counted)):
            found.append(text)
    return found


def looked_at(gate: Gate, headline: Headline, lines: Sequence[Line]) -> list[Line]:
    """Return the lines that ``gate`` looks at: the one that it names, else those that the worst is sought among."""
    if gate.place is not None:
        return [line for line in lines if line.place == gate.place]
    if gate.access:
        within = headline.accesses[: headline.accesses.index(gate.access) + 1]
        return [line for line in lines if line.access in within]
    return [line for line in lines if line.worst]


def failure(gate: Gate, headline: Headline, counted: Sequence[Line]) -> str:
    """Return why the lines that ``gate`` looks at do not pass it, or ""."""
    if not counted:
        return f"gate {gate.text}: no line of the result has {gate.metric}, so it cannot be passed"
    known = [line for line in counted if is_number(line.values.get(gate.metric))]
    unknown = [line for line in counted if line not in known]
    if unknown and (headline.undefined_fails or gate.place is not None):
        return f"gate {gate.text}: {gate.metric} was not measured ({unknown[0].where}), so it cannot be passed"
    worst = max(known, key=lambda line: line.values[gate.metric] or 0.0, default=None)
    value = worst.values[gate.metric] if worst else None
    if worst is None or value is None or value <= gate.limit:
        return ""
    return f"gate {gate.text}: {gate.metric} is {value:.3f} ({worst.where}), above {gate.limit:g}"


def is_number(value: float | None) -> bool:
    """Say whether ``value`` was measured."""
    return value is not None and not math.isnan(value)
