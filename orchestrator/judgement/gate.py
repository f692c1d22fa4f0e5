"""The release gate: ``--fail-above METRIC=VALUE`` turns a result into an exit code."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from audits.errors import BadInput, did_you_mean
from orchestrator.judgement.gate_result import (
    FAILED,
    INCONCLUSIVE,
    PASSED,
    GateResult,
    LimitResult,
    Outcome,
    outcome_of,
)
from orchestrator.judgement.lines import Headline, Line
from orchestrator.judgement.rows import Control, Source
from orchestrator.judgement.rule import clears, convicts, decisive, gathered
from orchestrator.judgement.wording import short

OWN = re.compile(r"python:[\w.]+:\w+")
INSIDE = "\0"
"""In the place of a dot inside a name."""


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
        raise BadInput(f"--fail-above {text!r}: the value must be a number from 0 up to, but not including, 1")
    return name, limit


def gates_of(texts: Sequence[str], headline: Headline, plan: Any) -> list[Gate]:
    """Return the gates of ``texts``; refuses, before any work is done, those that a result of ``plan`` cannot hold."""
    gates = [parse_gate(text, headline) for text in texts]
    names = headline.names(plan)
    for gate in gates:
        for part, name in zip(headline.parts, gate.place or (), strict=False):
            if name not in names[part]:
                near = did_you_mean(name, [*names[part], *headline.accesses])
                known = ", ".join(names[part])
                raise BadInput(f"--fail-above {gate.text!r}: {part} {name!r}{near} is not in the plan: {known}")
        if part := next((part for part, own in names.items() if gate.access in own), ""):
            raise BadInput(f"--fail-above {gate.text!r}: {gate.access!r} is an access and an {part}; rename the {part}")
        if gate.place is None and (reason := headline.refusal(plan)):
            raise BadInput(f"--fail-above {gate.text!r}: {reason}")
    return gates


def judge_gates(gates: Sequence[Gate], headline: Headline, plan: Any, document: Mapping[str, Any]) -> GateResult:
    """Return how a result stands to every gate, and how the controls of their lines did: the worst of each name."""
    lines, lost = headline.lines(document), headline.lost(plan, document)
    counted = [looked_at(gate, headline, lines) for gate in gates]
    controls = [controls_of(document, each) for each in counted]
    limits = tuple(
        judged_one(gate, headline, own, each, looked_at(gate, headline, lost))
        for gate, own, each in zip(gates, controls, counted, strict=True)
    )
    return GateResult(outcome_of(limits), limits, tuple(gathered(control for own in controls for control in own)))


def ungated(headline: Headline, document: Mapping[str, Any]) -> GateResult:
    """Return how the controls of a result did that was put to no gate: those of all its lines."""
    return GateResult(controls=tuple(gathered(controls_of(document, headline.lines(document)))))


def controls_of(document: Mapping[str, Any], counted: Sequence[Line]) -> list[Control]:
    """Return the controls of lines of a result."""
    return decisive(map(Control.of, document.get("controls", ())), sources_of(counted))


def sources_of(counted: Sequence[Line]) -> set[Source]:
    """Return the scores that lines are of."""
    return {Source(line.setting, line.subject, line.attack) for line in counted}


def failures(gates: Sequence[Gate], headline: Headline, plan: Any, document: Mapping[str, Any]) -> list[str]:
    """Return a line on every gate that a result does not pass."""
    return [
        limit.sentence() for limit in judge_gates(gates, headline, plan, document).limits if limit.outcome != PASSED
    ]


def judged_one(
    gate: Gate, headline: Headline, controls: Sequence[Control], counted: Sequence[Line], absent: Sequence[Line]
) -> LimitResult:
    """Return how the ``counted`` lines of a result, and their ``controls``, stand to a gate.

    What is ``absent`` or void is not passed, nor is anything beside a control that does not clear it: the gate is then
    inconclusive. A void number is no value, whatever it would be.
    A value above the limit fails it, whatever else was not measured, unless a control failed that puts it in doubt.
    """
    broken = [f"control {short(control)}" for control in controls if not clears(control)]
    doubted = not all(map(convicts, controls))
    missing = [f"no result of {', '.join(line.where for line in absent)}; see the warnings"] if absent else []
    void = [line for line in counted if line.is_void(gate.metric)]
    sound = [line for line in counted if line not in void]
    whose = "; ".join(dict.fromkeys(line.where for line in void))
    if void:
        missing.append(f"{gate.metric} is void, because a promised rate is not kept ({whose})")
    worst, unmeasured = worst_of(gate, headline, sound)
    if unmeasured and (sound or not (absent or void)):
        missing.append(unmeasured)
    value, where = (worst.values[gate.metric], worst.where) if worst else (None, whose)
    found = LimitResult(gate.text, gate.metric, gate.limit, value, where, PASSED)
    above = [found.above()] if value is not None and value > gate.limit else []
    outcome: Outcome = FAILED if above and not doubted else INCONCLUSIVE if above or broken or missing else PASSED
    return replace(found, outcome=outcome, reasons=(*above, *missing, *broken))


def looked_at(gate: Gate, headline: Headline, lines: Sequence[Line]) -> list[Line]:
    """Return the lines that ``gate`` looks at: the one that it names, else those that the worst is sought among."""
    if gate.place is not None:
        return [line for line in lines if line.place == gate.place]
    if gate.access:
        within = headline.accesses[: headline.accesses.index(gate.access) + 1]
        return [line for line in lines if line.access in within]
    return [line for line in lines if line.worst]


def worst_of(gate: Gate, headline: Headline, counted: Sequence[Line]) -> tuple[Line | None, str]:
    """Return the worst of the lines that ``gate`` looks at, if any is known, and why that is not enough, or ""."""
    if not counted:
        return None, f"no line of the result has {gate.metric}, so it cannot be passed"
    known = [line for line in counted if is_number(line.values.get(gate.metric))]
    unknown = [line for line in counted if line not in known]
    worst = max(known, key=lambda line: line.values[gate.metric] or 0.0, default=None)
    if unknown and (headline.undefined_fails or gate.place is not None):
        return worst, f"{gate.metric} was not measured ({unknown[0].where}), so it cannot be passed"
    if worst is None:
        return None, f"{gate.metric} is not defined in any line that it looks at, so it cannot be passed"
    return worst, ""


def is_number(value: float | None) -> bool:
    """Say whether ``value`` was measured."""
    return value is not None and not math.isnan(value)
