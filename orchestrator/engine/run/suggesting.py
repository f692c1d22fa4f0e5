"""The next settings that a search tries: a pure function of its seed, the trial's number, and the trials so far.

The study of Optuna is made anew for each suggestion from the trials that the journal knows, with a sampler seeded from
(seed of the search, number of the trial). So a search that was killed goes on exactly as it would have.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from audits.seeds import derive_seed, numpy_generator
from tune_spaces.dimensions import DIGITS, Dimension, multiple
from tune_spaces.space import REDRAWN, Changes, Search

if TYPE_CHECKING:
    import optuna

Values = tuple[float | None, ...]
"""The numbers that a search compares trials by; None where one is not defined."""


@dataclass
class Trial:
    """One trial: what it changes, its ``values`` after so many parts of the targets, and how it ended ("" if not yet).

    ``params``: as the searcher drew them, before rounding. ``repeats``: the number of an earlier trial with the same
    changes, whose end is this one's.
    """

    number: int
    changes: dict[str, Any]
    params: dict[str, Any]
    values: dict[int, Values] = field(default_factory=dict)
    state: str = ""
    repeats: int | None = None
    seconds: float = 0.0

    @property
    def last(self) -> Values:
        """The values after the last part that was judged."""
        return self.values[max(self.values)] if self.values else ()


def suggest(search: Search, trials: Sequence[Trial]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the changes of the next trial, and what the searcher drew; ``trials`` are all that were asked before."""
    number = len(trials)
    seed = derive_seed(search.seed, "search", number)
    if search.algorithm == "grid":
        return search.space.grid()[number], {}
    if search.algorithm == "random":
        return _unlike(search, [trial.changes for trial in trials], seed), {}
    return _from_optuna(search, trials, seed)


def _unlike(search: Search, before: Sequence[Changes], seed: int) -> Changes:
    """Return a draw that is none of those ``before``, or the last of as many as show that there is none."""
    generator = numpy_generator(seed)
    for _ in range(REDRAWN * (len(before) + 1)):
        drawn = search.space.sample(generator)
        if drawn not in before:
            break
    return drawn


def _from_optuna(search: Search, trials: Sequence[Trial], seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of features that Optuna calls experimental
            ends = {"max": optuna.study.StudyDirection.MAXIMIZE, "min": optuna.study.StudyDirection.MINIMIZE}
            directions = [ends[mode] for mode in search.mode]
            sampler = optuna.samplers.TPESampler(seed=seed % 2**32)
            study = optuna.create_study(directions=directions, sampler=sampler)
            for trial in trials:
                study.add_trial(_as_optuna(search, trial))
            asked = study.ask()
            changes: dict[str, Any] = {}
            for dimension in search.space.in_order():
                if search.space.active(dimension, changes):
                    changes[dimension.path] = _drawn(asked, dimension)
            ordered = {each.path: changes[each.path] for each in search.space.dimensions if each.path in changes}
            return ordered, dict(asked.params)
    finally:
        optuna.logging.set_verbosity(before)


def _as_optuna(search: Search, trial: Trial) -> optuna.trial.FrozenTrial:
    """Return a trial as Optuna keeps it: with a value, pruned at a part, failed, or still running."""
    import optuna

    states = optuna.trial.TrialState
    defined = [value for value in trial.last if value is not None]
    whole = trial.state == "done" and len(defined) == len(search.metric)
    known = {parts: values[0] for parts, values in trial.values.items() if len(values) == 1 and values[0] is not None}
    if whole:
        state = states.COMPLETE
    elif trial.state in ("stopped", "out of time") and known:
        state = states.PRUNED
    else:
        state = states.FAIL if trial.state else states.RUNNING
    return optuna.trial.create_trial(
        state=state,
        values=defined if whole else None,
        params=trial.params,
        distributions=_distributions(search, trial.params),
        intermediate_values=known if len(search.mode) == 1 else None,
    )


def _distributions(search: Search, params: Mapping[str, Any]) -> dict[str, Any]:
    return {each.path: distribution(each) for each in search.space.dimensions if each.path in params}


def distribution(dimension: Dimension) -> Any:
    """Return the distribution that Optuna draws from: places of options, numbers of steps, numbers before rounding."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if dimension.listed:
        return CategoricalDistribution(list(range(len(dimension.values))))
    if counts_steps(dimension):
        unit = dimension.step or 1
        return IntDistribution(round(dimension.low / unit), round(dimension.high / unit), log=dimension.log)
    return FloatDistribution(dimension.low, dimension.high, log=dimension.log)


def counts_steps(dimension: Dimension) -> bool:
    """Return whether Optuna draws a whole number of steps: not where orders of magnitude are rounded to steps."""
    return dimension.whole or (dimension.step is not None and not dimension.log)


def _drawn(asked: optuna.Trial, dimension: Dimension) -> Any:
    """Return the value that a trial draws for a dimension, as a plan takes it."""
    if dimension.form == "constant":
        return dimension.values[0]
    drawn = distribution(dimension)
    if dimension.listed:
        return dimension.values[int(asked.suggest_categorical(dimension.path, drawn.choices))]
    if counts_steps(dimension):
        return multiple(asked.suggest_int(dimension.path, drawn.low, drawn.high, log=drawn.log), dimension.step or 1)
    value, step = asked.suggest_float(dimension.path, drawn.low, drawn.high, log=drawn.log), dimension.step
    rounded = float(f"{value:.{DIGITS}g}") if step is None else multiple(round(value / step), step)
    return min(max(rounded, drawn.low), drawn.high)
