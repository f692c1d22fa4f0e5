"""The trials of a search as page and tracker show them while it goes on, and result.json at its end."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from audits.errors import how_many
from orchestrator.engine.progress import Look, now
from orchestrator.engine.run.suggesting import Trial, Values
from tune_spaces.space import Search

VALUE = "value"
"""What the number is called by which trials are compared."""


@dataclass(frozen=True)
class TrialNews:
    """A trial as it stands: ``values`` maps parts of the targets done to the numbers of the search."""

    number: int
    name: str
    changes: Mapping[str, Any]
    values: Mapping[int, Mapping[str, float]]
    state: str

    @property
    def parts(self) -> int:
        """Parts of the targets that are judged."""
        return max(self.values, default=0)


def news_of(trial: Trial, name: str, metric: Sequence[str]) -> TrialNews:
    """Return a trial as it is told."""
    names = names_of(metric)
    values = {parts: _known(names, found) for parts, found in sorted(trial.values.items())}
    return TrialNews(trial.number, name, dict(trial.changes), values, trial.state or "running")


def rehearsed(number: int, name: str, changes: Mapping[str, Any], score: float | None, units: int) -> TrialNews:
    """Return a setting as it is told whose ``score`` is that of ``units`` in the place of targets; None: refused."""
    values = {} if score is None else {units: {VALUE: score}}
    return TrialNews(number, name, dict(changes), values, "refused" if score is None else "done")


def names_of(metric: Sequence[str]) -> list[str]:
    """Return how the numbers of a search are called where trials are told."""
    return [VALUE] if len(metric) == 1 else [f"{VALUE}.{each}" for each in metric]


def _known(names: Sequence[str], values: Values) -> dict[str, float]:
    return {name: value for name, value in zip(names, values, strict=True) if value is not None}


def told_of(result: Mapping[str, Any]) -> list[TrialNews]:
    """Return the trials of a result (the content of result.json) as they are told; none where there were none.

    The settings among which ``orch tune`` chose are trials as well, each with its score at selection.
    """
    if (selection := result.get("selection")) is not None:
        return [
            rehearsed(number, row["setting"], row["overrides"], row["score"], selection["units"])
            for number, row in enumerate(selection["settings"])
        ]
    search = result.get("search")
    if search is None:
        return []
    names = names_of(search["metric"])
    return [
        TrialNews(
            row["number"],
            row["setting"],
            row["changes"],
            {rung["parts"]: _known(names, rung["values"]) for rung in row["rungs"]},
            row["state"],
        )
        for row in search["trials"]
        if row["repeats"] is None
    ]


def look_at(trials: Sequence[TrialNews], samples: int, parts: int) -> Look:
    """Return how far a search is: trials that have ended, parts of each, and the numbers of those that have."""
    ended = {trial.name: trial.values[trial.parts] for trial in trials if trial.state != "running" and trial.values}
    places = {trial.name: (trial.parts, trial.parts if trial.state != "running" else parts) for trial in trials}
    return Look(now(), {"trials": samples}, {"trials": len(ended)}, places, ended)


def counted(trials: Sequence[Trial]) -> str:
    """Return in one line how the trials of a search ended; one that repeats another is not counted."""
    tried = [trial for trial in trials if trial.repeats is None]
    states = ", ".join(f"{count} {state}" for state, count in Counter(each.state or "open" for each in tried).items())
    again = len(trials) - len(tried)
    return f"trials: {len(tried)} ({states})" + (
        f"; {how_many(again, 'suggestion')} repeated one of them" if again else ""
    )


def search_document(
    search: Search, trials: Sequence[Trial], samples: int, rungs: Sequence[int], name_of: Callable[[Trial], str]
) -> dict[str, Any]:
    """Return the field ``search`` of result.json."""
    asha = search.scheduler
    single = len(search.metric) == 1
    rows = [
        {
            "number": trial.number,
            "setting": name_of(trial),
            "changes": dict(trial.changes),
            "values": list(trial.last),
            "parts": max(trial.values, default=0),
            "rungs": [{"parts": parts, "values": list(values)} for parts, values in sorted(trial.values.items())],
            "state": trial.state,
            "repeats": trial.repeats,
            "seconds": round(trial.seconds, 3),
        }
        for trial in trials
    ]
    return {
        "algorithm": search.algorithm,
        "samples": samples,
        "seed": search.seed,
        "seeds": list(search.seeds),
        "scheduler": {"name": "asha", "grace": asha.grace, "reduction": asha.reduction} if asha else None,
        "rungs": list(rungs),
        "metric": list(search.metric),
        "mode": list(search.mode),
        "out_of_time": len(trials) < samples or any(trial.state == "out of time" for trial in trials),
        "trials": rows,
        "front": [] if single else front(trials, search.mode),
    }


def front(trials: Sequence[Trial], mode: Sequence[str]) -> list[int]:
    """Return the numbers of the whole trials than which none is better in one number and no worse in the others."""
    signs = [1.0 if each == "min" else -1.0 for each in mode]
    costs = {
        trial.number: tuple(sign * value for sign, value in zip(signs, trial.last, strict=True) if value is not None)
        for trial in trials
        if trial.state == "done" and trial.repeats is None
    }
    known = {number: cost for number, cost in costs.items() if len(cost) == len(mode) and all(map(math.isfinite, cost))}
    return [
        number
        for number, cost in known.items()
        if not any(all(a <= b for a, b in zip(other, cost, strict=True)) and other != cost for other in known.values())
    ]
