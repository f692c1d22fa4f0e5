"""Trials that are asked for one at a time and report as they go on: as Ray Tune trials, or in this process.

Ray Tune runs them; what is tried next and which trial ends is decided by a ``Steering`` in the driver, the same for
both ways. Tune's own restore would read pickles from the folder of the experiment; here nothing of it is read.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from actors.capacity import RoomWatch, require_room
from actors.cluster import connect
from actors.environment import limit_threads
from actors.failures import pack_failure, unpack_failure
from actors.jobs import Workers, WorkersLost
from actors.tune_runs import fit, tune_run

Report = Mapping[str, Any]
"""What a trial says of itself, as JSON values."""

SearchTrial = Callable[[dict[str, Any]], Iterator[Report]]
"""Runs one configuration and reports now and then; must be safe to repeat, and is not asked on once it has ended."""

NUMBER, REPORT, FAILURE = "number", "report", "failure"


class Steering(Protocol):
    """Says what is tried and when a trial ends; called in one thread."""

    def ask(self) -> dict[str, Any] | None:
        """Return the next configuration, with its ``number``; None: no more trials begin."""
        ...

    def hear(self, number: int, report: Report) -> bool:
        """Take a report; return whether the trial ends here."""
        ...

    def failed(self, number: int, error: Exception) -> None:
        """Take note that a trial raised ``error``; the others go on."""
        ...


@dataclass
class _Listener:
    """What searcher, scheduler and callback of a run reach by the run's name, since Tune copies and pickles them."""

    steering: Steering
    interrupted: threading.Event = field(default_factory=threading.Event)
    broken: BaseException | None = None
    """What steering raised; Tune would make another error of it, so it is raised between two steps."""

    def guarded(self, call: Callable[[], Any], otherwise: Any) -> Any:
        """Return what ``call`` returns, or ``otherwise`` if it raises or something did before."""
        if self.broken is not None:
            return otherwise
        try:
            return call()
        except BaseException as error:
            self.broken = error
            return otherwise


_LISTENING: dict[str, _Listener] = {}


class _Halted(Exception):
    """Ctrl-C, or an error of steering: an exception upon which Tune stops its trials in order."""


def run_search(steering: Steering, trial: SearchTrial, workers: Workers, at_a_time: int, *, name: str) -> None:
    """Run trials as ``steering`` asks for them, at most ``at_a_time``, until it asks for no more.

    A trial's exception lets the others go on, and is told to ``steering``; so is WorkersLost of a trial that killed its
    worker too often. With 0 workers trials run here, one after the other, without Ray's processes. Ctrl-C stops the
    trials and is raised as KeyboardInterrupt. Raises BadInput when the cluster cannot hold a single worker. Trials may
    be left open when Tune ends of its own accord (it does upon SIGUSR1); ``steering`` knows which have ended.
    """
    if workers.count == 0:
        _search_here(steering, trial)
        return
    with connect(workers):
        require_room(workers, least=1)
        _tune(steering, trial, workers, at_a_time, name)


def _search_here(steering: Steering, trial: SearchTrial) -> None:
    while (config := steering.ask()) is not None:
        number = int(config[NUMBER])
        reports = trial(config)
        ended = False
        while not ended:
            try:
                report = next(reports, None)
            except Exception as error:  # the other trials still run
                steering.failed(number, error)
                break
            ended = report is None or steering.hear(number, report)


def _tune(steering: Steering, trial: SearchTrial, workers: Workers, at_a_time: int, name: str) -> None:
    with tune_run(_run_trial, trial, workers, name) as (make, run_name):
        tuner = make(
            _watch(workers, run_name),
            search_alg=_searcher(run_name),
            scheduler=_scheduler(run_name),
            max_concurrent_trials=at_a_time,
            num_samples=10**6,  # the searcher says when there are enough
            trial_dirname_creator=_folder_name,
        )
        listener = _LISTENING[run_name] = _Listener(steering)
        try:
            results = fit(tuner, listener.interrupted)
        except _Halted:
            results = ()
        finally:
            del _LISTENING[run_name]
        if listener.broken is not None:
            raise listener.broken
        if listener.interrupted.is_set():
            raise KeyboardInterrupt
        for result in results:
            if result.given_up:
                number = int(result.config[NUMBER])
                steering.failed(number, WorkersLost(f"trial {number} of {name} is given up: {result.given_up}"))


def _folder_name(trial: Any) -> str:
    return f"trial-{trial.config[NUMBER]}-{trial.trial_id}"


def _run_trial(config: dict[str, Any], trial: SearchTrial, threads: int) -> None:
    from ray import tune

    limit_threads(threads)
    try:
        for report in trial(config):
            tune.report({REPORT: json.dumps(dict(report))})
    except Exception as error:  # every failure is reported, so that it arrives as itself
        tune.report({FAILURE: pack_failure(error).hex()})


def _searcher(run_name: str) -> Any:
    from ray.tune.search import Searcher

    class Asking(Searcher):  # type: ignore[misc]  # ray is untyped here
        """Asks the steering of a run for each trial; keeps nothing."""

        def suggest(self, trial_id: str) -> dict[str, Any] | str:
            listener = _LISTENING[run_name]
            config: dict[str, Any] | None = listener.guarded(listener.steering.ask, None)
            return Searcher.FINISHED if config is None else config

        def on_trial_complete(self, trial_id: str, result: Any = None, error: bool = False) -> None:
            pass

        def save(self, checkpoint_path: str) -> None:
            raise NotImplementedError  # upon which Tune saves nothing

        def restore(self, checkpoint_path: str) -> None:
            raise NotImplementedError

    return Asking()


def _scheduler(run_name: str) -> Any:
    from ray.tune.schedulers import FIFOScheduler

    class Ending(FIFOScheduler):  # type: ignore[misc]
        """Hands reports to the steering of a run, which says when a trial ends."""

        def on_trial_result(self, tune_controller: Any, trial: Any, result: Mapping[str, Any]) -> str:
            listener, number = _LISTENING[run_name], int(trial.config[NUMBER])
            steering = listener.steering

            def heard() -> bool:
                if FAILURE in result:
                    failure = unpack_failure(bytes.fromhex(result[FAILURE]))
                    if not isinstance(failure, Exception):
                        raise failure
                    steering.failed(number, failure)
                    return True
                return REPORT not in result or steering.hear(number, json.loads(result[REPORT]))

            return str(FIFOScheduler.STOP if listener.guarded(heard, True) else FIFOScheduler.CONTINUE)

    return Ending()


def _watch(workers: Workers, run_name: str) -> Any:
    from ray import tune

    class Watch(tune.Callback):  # type: ignore[misc]
        """Ends the run upon Ctrl-C, an error of steering, or without machines; runs in the calling thread."""

        def __init__(self) -> None:
            self._watch = RoomWatch(workers)

        def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
            if (listener := _LISTENING.get(run_name)) and (listener.broken or listener.interrupted.is_set()):
                raise _Halted
            self._watch.check()

    return Watch()
