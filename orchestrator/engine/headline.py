"""The numbers of a result that limits can name, and the controls without which these numbers say nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

PROMISED = frozenset({"tpr", "tpr_low", "precision", "precision_low", "coverage"})
"""Metrics that mean nothing where a promised rate is not kept."""


def breaks(row: Mapping[str, Any]) -> bool:
    """Say whether a row of any result (of result.json) is void, since a promised rate is broken.

    Earlier versions of TMIA did not write that: their cells break it on null models, and those of a given model, which
    alone are ``resampled``, on its known non-members.
    """
    if "void" in row:
        return bool(row["void"])
    return bool(row.get("null_fpr_off") or ("resampled" in row and row.get("fpr_off")))


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

    @property
    def void(self) -> bool:
        """Whether a promised rate of the line is broken."""
        return breaks(self.values)

    def is_void(self, metric: str) -> bool:
        """Say whether a number of the line must not be quoted, since it rests on a promised rate that is broken."""
        return self.void and metric in PROMISED


@dataclass(frozen=True)
class ControlName:
    """How a control is called: by its ``term`` in the field, and by a ``description``, "" where the term is plain."""

    term: str
    description: str = ""

    def told(self) -> str:
        """Return the name for readers who may not know the term."""
        return f"{self.description} ({self.term})" if self.description else self.term


PROMISED_RATES = ControlName("promised false-alarm rates")
DIRECTION = ControlName("direction of scores")
LEARNT = ControlName("members are learnt")
OWN_MODELS = ControlName("own models", "models trained by the plan")
FIT = ControlName("fit of own models")
Doubt = Literal["truth", "cells", "power"]
Told = tuple[str, float | None, float | None, float | None]
"""An attack, and its AUC with the ends of the interval."""


@dataclass(frozen=True)
class Control:
    """A control that a result has, by name; ``failure``: how it failed, "" where it held.

    ``of``: what is in doubt where it failed. "truth": whatever is found; "cells": hit rates at promises that were not
    kept; "power": what is not found. Below a limit nothing stands beside a failure.
    """

    name: str
    failure: str = ""
    of: Doubt = "truth"

    def doubts(self, metric: str) -> bool:
        """Say whether a value of ``metric`` above a limit is in doubt where the control failed."""
        return self.of == "truth" or (self.of == "cells" and metric in PROMISED)


def backwards(auc: float | None, p_holm: float | None, level: float) -> bool:
    """Say whether members have lower scores than others: the AUC is below one half, also after Holm's correction."""
    return auc is not None and p_holm is not None and auc < 0.5 and p_holm <= 1.0 - level


def not_learnt(judge: str | None, given: Iterable[Told], own: Iterable[Told]) -> str | None:
    """Return why a given model cannot have learnt its members as own models did; "" if it can.

    ``given``, ``own``: what attacks see of the members of the given model, and of those of models of the plan's recipe.
    It is told by the judge, or by the attack that sees most in own models where the judge has no result: its interval
    must lie above one half, or not below that of own models. A list that does not name the training points looks like a
    model that memorised none of them. None where nothing is seen in own models.
    """
    asked = {attack: (auc, low, high) for attack, auc, low, high in given}
    seen = [
        (attack != judge, -low, attack, auc)
        for attack, auc, low, _ in own
        if auc is not None and low is not None and low > 0.5 and attack in asked
    ]
    if not seen:
        return None
    _, least, attack, theirs = min(seen)
    auc, low, high = asked[attack]
    if auc is None or low is None or high is None or low > 0.5 or high >= -least:
        return ""
    return (
        f"members of the given model are told with AUC {auc:.3f} [{low:.3f}, {high:.3f}] by {attack}, those of own "
        f"models with {theirs:.3f}, at least {-least:.3f}: either target.members does not name its training points, or "
        "its recipe is not the plan's"
    )


def turned(rows: Iterable[tuple[str, float | None, float | None]], level: float) -> tuple[str, float] | None:
    """Return the attack, and its AUC, by which members stand out the other way round; None where they do not.

    ``rows``: attack, AUC and its corrected p-value. It is the one whose AUC is furthest from one half of those that
    differ from it, if that lies below.
    """
    differ = [(auc, attack) for attack, auc, p in rows if auc is not None and p is not None and p <= 1.0 - level]
    auc, attack = max(differ, key=lambda each: abs(each[0] - 0.5), default=(0.5, ""))
    return (attack, auc) if auc < 0.5 else None


def promise(void: Iterable[str]) -> Control:
    """Return the control that promised rates were kept; ``void``: the lines that did not keep theirs.

    Their own hit rates are void, and no number then; those of other lines stand.
    """
    lines = "; ".join(dict.fromkeys(void))
    return Control(PROMISED_RATES.term, f"not kept by {lines}: hit rates are void" if lines else "", "power")


def no_refusal(plan: Any) -> str:
    """Return no reason why limits without a place could not be held by a result of ``plan``."""
    return ""


def nothing_lost(plan: Any, document: Mapping[str, Any]) -> list[Line]:
    """Return no line that a result lacks."""
    return []


def no_control(document: Mapping[str, Any], lines: Sequence[Line]) -> list[Control]:
    """Return no control."""
    return []


@dataclass(frozen=True)
class Headline:
    """What limits can name in results of a kind of audit.

    ``example``: a limit, for messages; ``summary``: metrics of the worst line, ``metrics``: of a named one; ``parts``:
    the words for the parts of a line's name (``("unlearner", "attack")``). ``names(plan)`` returns part → the names
    that the plan has. ``refusal(plan)``: why the worst line cannot be asked for, or "". ``lost(plan, document)``: the
    lines that a result lacks, because an attack failed.

    A result (``document``, the content of result.json) is read without its plan, which may name code that a reader has
    not: ``lines(document)``; ``controls(document, lines)``: the controls that it has and without which ``lines`` say
    nothing.
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
    controls: Callable[[Mapping[str, Any], Sequence[Line]], Sequence[Control]] = no_control
    accesses: tuple[str, ...] = ()
    undefined_fails: bool = True
