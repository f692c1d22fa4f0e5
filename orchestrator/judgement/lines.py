"""The numbers of a result that limits can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PROMISED = frozenset({"tpr", "tpr_low", "precision", "precision_low", "coverage"})
"""Metrics that mean nothing where a promised rate is not kept."""


@dataclass(frozen=True)
class Line:
    """A line of a result that a limit can look at: its ``place`` by name, its numbers, and how messages name it.

    ``worst``: it takes part in the worst line of all, which a limit without a place looks at; ``access``: so it does in
    the worst line of this access and of stronger ones ("": of none). ``setting``, ``subject``, ``attack``: whose scores
    they are, by which controls are about them.
    """

    place: tuple[str, ...]
    values: Mapping[str, float | None]
    where: str
    worst: bool
    access: str = ""
    setting: str = ""
    subject: str = ""
    attack: str = ""

    @property
    def void(self) -> bool:
        """Whether a promised rate of the line is broken."""
        return bool(self.values.get("void"))

    def is_void(self, metric: str) -> bool:
        """Say whether a number of the line must not be quoted, since it rests on a promised rate that is broken."""
        return self.void and metric in PROMISED


def no_refusal(plan: Any) -> str:
    """Return no reason why limits without a place could not be held by a result of ``plan``."""
    return ""


def nothing_lost(plan: Any, document: Mapping[str, Any]) -> list[Line]:
    """Return no line that a result lacks."""
    return []


@dataclass(frozen=True)
class Headline:
    """What limits can name in results of a kind of audit.

    ``example``: a limit, for messages; ``summary``: metrics of the worst line, ``metrics``: of a named one; ``parts``:
    the words for the parts of a line's name (``("unlearner", "attack")``). ``names(plan)`` returns part → the names
    that the plan has. ``refusal(plan)``: why the worst line cannot be asked for, or "". ``lost(plan, document)``: the
    lines that a result lacks, because an attack failed.

    A result (``document``, the content of result.json) is read without its plan, which may name code that a reader has
    not: ``lines(document)``.
    ``accesses``: levels of access that a limit can name, weakest first. ``undefined_fails``: a line of which the
    metric is not defined is worse than all others; else it is left out.
    """

    example: str
    summary: tuple[str, ...]
    metrics: tuple[str, ...]
    parts: tuple[str, ...]
    names: Callable[[Any], Mapping[str, Sequence[str]]]
    lines: Callable[[Mapping[str, Any]], Sequence[Line]]
    refusal: Callable[[Any], str] = no_refusal
    lost: Callable[[Any, Mapping[str, Any]], Sequence[Line]] = nothing_lost
    accesses: tuple[str, ...] = ()
    undefined_fails: bool = True
