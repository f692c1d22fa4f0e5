"""Checks of a search before its first trial, and of the journal that it goes on with."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import asdict
from typing import Any

from audits.errors import BadInput
from audits.extras import command
from orchestrator.engine.plan.base import BasePlan
from tune_spaces.space import Search


def check_search(search: Search, parts: int) -> None:
    """Raise BadInput for a search that cannot be made of a plan whose targets come in ``parts``."""
    require_searcher(search)
    if not search.metric or len(search.metric) != len(search.mode):
        raise BadInput(
            "metric: name the number that trials are compared by, and with mode which end of it is best: min or max"
        )
    if search.algorithm != "grid" and not search.samples:
        raise BadInput(f"samples: say how many trials search: {search.algorithm} makes")
    if len(search.metric) > 2:
        raise BadInput(f"metric: {len(search.metric)} numbers; give one, or two for a Pareto front")
    if (asha := search.scheduler) is None:
        return
    if len(search.metric) > 1:
        raise BadInput("scheduler: asha stops trials by one number, and metric names two; leave the scheduler out")
    if parts <= asha.grace:
        count = "one part" if parts == 1 else f"{parts} parts"
        raise BadInput(
            f"scheduler: asha has nothing to stop: the targets of this plan are judged in {count}, and the first rung "
            f"is after {asha.grace}; leave the scheduler out{', or lower grace' if parts > 1 else ''}"
        )


def require_searcher(search: Search) -> None:
    """Raise BadInput where the package that searches is not installed, or is there but cannot be imported."""
    if search.algorithm != "optuna":
        return
    fault = "is not installed" if importlib.util.find_spec("optuna") is None else ""
    if not fault:
        try:
            import optuna  # noqa: F401
        except ImportError as error:
            fault = f"cannot be imported ({' '.join(str(error).split())})"
    if fault:
        raise BadInput(
            f"search: optuna needs the package optuna, which {fault}: {command('optuna')}, or use search: random"
        )


def require_trials_alone(plan: BasePlan) -> None:
    """Raise BadInput where several workers are to make a model of an adaptive search."""
    if (team := plan.compute.workers_per_model) > 1:
        raise BadInput(
            f"compute.workers_per_model is {team}, but trials of a search (optuna, asha) train alone; leave one out"
        )


def samples_of(search: Search) -> int:
    """Return how many trials a search makes at the most."""
    if search.algorithm == "grid":
        return len(search.space.grid())
    assert search.samples is not None
    return search.samples


def head_of(search: Search, plan: BasePlan) -> dict[str, Any]:
    """Return what makes a journal that of this search: all but how long it goes on, and how many trials at a time."""
    told = asdict(search)
    for name in ("samples", "seconds", "at_a_time"):
        del told[name]
    head: dict[str, Any] = json.loads(json.dumps({"plan": plan.plan_hash, **told}))
    return head
