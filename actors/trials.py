"""The configurations of an experiment as Ray Tune trials over results that are already in the store."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from actors.capacity import RoomWatch, require_room
from actors.cluster import connect
from actors.environment import limit_threads
from actors.failures import pack_failure, unpack_failure
from actors.jobs import Progress, Workers, WorkersLost
from actors.tune_runs import Outcome, fit, tune_run
from audits.errors import BadInput

Trial = Callable[[dict[str, Any]], dict[str, float]]
"""Runs one configuration and returns its metrics; must be safe to repeat (a trial whose worker died runs again)."""

FAILURE = "failure"
RETURNED = "returned"
"""Reported by every trial that came to its end; a trial of which Tune has no such report was stopped."""


@dataclass
class _Listener:
    """What the callback of a run reaches by the run's name, since Tune pickles it."""

    on_progress: Progress
    interrupted: threading.Event = field(default_factory=threading.Event)
    total: int = 0


_LISTENING: dict[str, _Listener] = {}


class _Interrupted(Exception):
    """Ctrl-C, as an exception upon which Tune stops its trials in order (upon KeyboardInterrupt it leaves them)."""


def run_trials(space: Mapping[str, Any], trial: Trial, workers: Workers, *, name: str, on_progress: Progress) -> None:
    """Run ``trial`` once for every configuration of ``space`` (Ray Tune primitives), ``workers.count`` at a time.

    A trial's exception lets the others finish; the first one (in the order of the grid) is then raised with its own
    type and message. ``name`` is the experiment's name. With 0 workers the grid is run in this process, without Ray:
    then ``space`` may hold constants and ``tune.grid_search`` only. Ctrl-C stops the trials and is raised as
    KeyboardInterrupt. Raises BadInput when the cluster cannot hold a single worker, WorkersLost when a trial killed its
    worker too often or ended without a result.
    """
    if workers.count == 0:
        _run_here(space, trial, on_progress)
        return
    with connect(workers):
        require_room(workers, least=1)  # a node may have been lost since the run began
        _tune(space, trial, workers, name, on_progress)


def expand_grid(space: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the configurations of ``space``; the last grid varies fastest. Raises BadInput for random samplers."""
    names, choices = list(space), []
    for name, value in space.items():
        if isinstance(value, Mapping):
            grid = value.get("grid_search")
            choices.append(list(grid) if len(value) == 1 and grid is not None else list(expand_grid(value)))
        elif type(value).__module__.startswith("ray."):
            raise BadInput(f"{name} = {value}: random samplers need workers; use a grid, or workers above 0")
        else:
            choices.append([value])
    for chosen in itertools.product(*choices):
        yield dict(zip(names, chosen, strict=True))


def _run_here(space: Mapping[str, Any], trial: Trial, on_progress: Progress) -> None:
    grid = list(expand_grid(space))
    failures: list[Exception] = []
    on_progress(0, len(grid))
    for done, config in enumerate(grid, start=1):
        try:
            trial(config)
        except Exception as error:  # the other configurations still run; raised below
            failures.append(error)
        on_progress(done, len(grid))
    if failures:
        raise failures[0]


def _tune(space: Mapping[str, Any], trial: Trial, workers: Workers, name: str, on_progress: Progress) -> None:
    with tune_run(_run_trial, trial, workers, name) as (make, run_name):
        tuner = make(_progress_callback(workers, run_name), space, max_concurrent_trials=workers.count)
        results, total = _fit(tuner, run_name, on_progress)
        for result in results:
            if packed := result.metrics.get(FAILURE):
                raise unpack_failure(bytes.fromhex(packed))
            if result.given_up:
                raise WorkersLost(f"trial {result.config} of {name} is given up: {result.given_up}")
        ended = [result for result in results if RETURNED in result.metrics]
        if len(ended) < total:
            stopped = next(
                (f"trial {one.config}" for one in results if one not in ended), f"{total - len(ended)} trials"
            )
            raise WorkersLost(f"{stopped} of {name} ended without a result; run the same command again to go on")


def _run_trial(config: dict[str, Any], trial: Trial, threads: int) -> None:
    from ray import tune

    limit_threads(threads)
    try:
        metrics: dict[str, Any] = {**trial(config), RETURNED: True}
    except Exception as error:  # every failure is reported, so that it arrives as itself
        metrics = {FAILURE: pack_failure(error).hex()}
    tune.report(metrics)


def _fit(tuner: Any, run_name: str, on_progress: Progress) -> tuple[Sequence[Outcome], int]:
    """Run the trials; return their results and how many there should be. Ctrl-C is KeyboardInterrupt, as elsewhere."""
    listener = _LISTENING[run_name] = _Listener(on_progress)
    try:
        results = fit(tuner, listener.interrupted)
    except _Interrupted:
        raise KeyboardInterrupt from None
    finally:
        del _LISTENING[run_name]
    if listener.interrupted.is_set():
        raise KeyboardInterrupt
    return results, listener.total


def _progress_callback(workers: Workers, run_name: str) -> Any:
    from ray import tune

    class Watch(tune.Callback):  # type: ignore[misc]  # ray is untyped here
        """Shows progress, ends the run upon Ctrl-C or without machines; runs in the calling thread."""

        def __init__(self) -> None:
            self._watch = RoomWatch(workers)

        def setup(
            self, stop: Any = None, num_samples: Any = None, total_num_samples: int | None = None, **_: Any
        ) -> None:
            self._done = 0
            if listener := _LISTENING.get(run_name):
                listener.total = total_num_samples or 0
            self._tell()

        def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
            if (listener := _LISTENING.get(run_name)) and listener.interrupted.is_set():
                raise _Interrupted
            self._watch.check()

        def on_trial_complete(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
            self._done += 1
            self._tell()

        def on_trial_error(self, iteration: int, trials: list[Any], trial: Any, **info: Any) -> None:
            self.on_trial_complete(iteration, trials, trial)

        def _tell(self) -> None:
            if listener := _LISTENING.get(run_name):
                listener.on_progress(self._done, listener.total)

    return Watch()
