"""Checks and their outcomes: a check is a function whose docstring says what must hold."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import nn

C = TypeVar("C")


class Broken(Exception):
    """A check that does not hold: what was found and what to do, in one line."""


@dataclass(frozen=True)
class Outcome:
    """``promise``: what must hold; ``problem``: what was found instead and what to do, "" where it holds."""

    promise: str
    problem: str = ""


def outcomes(checks: Iterable[Callable[[C], None]], case: C) -> list[Outcome]:
    """Return what comes of all ``checks`` on ``case``; whatever a user's code raises is a problem."""
    return [outcome(check, case) for check in checks]


def outcome(check: Callable[[C], None], case: C) -> Outcome:
    """Return what comes of one check on ``case``."""
    promise = (inspect.getdoc(check) or check.__name__).partition("\n")[0].rstrip(".")
    try:
        check(case)
    except Broken as error:
        return Outcome(promise, str(error))
    except Exception as error:  # a user's code may raise anything; the one line says what
        line = next(iter(str(error).strip().splitlines()), "no message")
        return Outcome(promise, f"it raised {type(error).__name__}: {line}")
    return Outcome(promise)


def must(holds: bool, problem: str) -> None:
    """Raise Broken with ``problem`` unless it ``holds``."""
    if not holds:
        raise Broken(problem)


def different(one: nn.Module, two: nn.Module) -> list[str]:
    """Return the names of what two models keep that is not equal bit for bit."""
    first, second = one.state_dict(), two.state_dict()
    return [
        name
        for name in {**first, **second}
        if name not in first or name not in second or not torch.equal(first[name], second[name])
    ]
