"""One run of Ray Tune over trials that report what became of them: its folder, its tuner, and how Ctrl-C reaches it.

Tune would read the results of a run, exceptions of trials that it gave up among them, from pickles in the run's folder.
On a cluster that folder is shared, so nothing is read there: the outcomes are those that the driver has in memory.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from actors.cluster import run_folder
from actors.environment import environment
from actors.interrupts import first_interrupt_noted, interrupt_held
from actors.jobs import MAX_LOSSES, Workers
from audits.data.regular import opened

MakeTuner = Callable[..., Any]
"""Makes the tuner of a run: ``(callback, space=None, **fields of TuneConfig)``."""

OUTSIDE_TUNE = {"TUNE_DISABLE_SIGINT_HANDLER": "1", "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1"}
"""Tune's own handler of Ctrl-C would end a run as if all were well, and stay installed; nobody reads Tune's logs."""
LAST_BYTES = 2**16
"""Of the text in which Tune notes why trials failed."""


class Outcome(NamedTuple):
    """What became of one trial: its configuration, its last report ({}: none), why Tune gave it up ("": it did not)."""

    config: dict[str, Any]
    metrics: dict[str, Any]
    given_up: str


class _Ended(Exception):
    """Raised by the last callback of a run, with its outcomes, before Tune reads any from the folder of the run."""

    def __init__(self, outcomes: Sequence[Outcome]) -> None:
        super().__init__()
        self.outcomes = outcomes


@contextmanager
def tune_run(run: Callable[..., None], trial: Any, workers: Workers, name: str) -> Iterator[tuple[MakeTuner, str]]:
    """Yield what makes the tuner of a run, and the run's name in Ray; its folder is there until the end.

    ``run(config, trial=, threads=)`` runs one trial. Failures of Python code are for it to report: what Tune itself
    retries are workers that died.
    """
    with interrupt_held():
        from ray import tune

    trainable = tune.with_resources(
        tune.with_parameters(run, trial=trial, threads=workers.threads), {"cpu": workers.cpus, "gpu": workers.gpus}
    )
    with run_folder(workers, name) as (storage, run_name):

        def make(callback: Any, space: Mapping[str, Any] | None = None, **config: Any) -> Any:
            return tune.Tuner(
                trainable,
                param_space=None if space is None else dict(space),
                tune_config=tune.TuneConfig(reuse_actors=True, **config),
                run_config=tune.RunConfig(
                    name=run_name,
                    storage_path=storage,
                    verbose=0,
                    failure_config=tune.FailureConfig(max_failures=MAX_LOSSES - 1),
                    callbacks=[callback, _ending()],
                ),
            )

        yield make, run_name


def fit(tuner: Any, interrupted: threading.Event) -> Sequence[Outcome]:
    """Run the trials and return what became of them; the first Ctrl-C sets ``interrupted`` and goes no further."""
    outside = sys.exception()
    try:
        with environment(OUTSIDE_TUNE), first_interrupt_noted(interrupted):
            tuner.fit()
    except _Ended as ended:
        outcomes, broken = ended.outcomes, ended.__context__
    else:
        raise RuntimeError("Ray Tune ended a run without its callbacks")
    if broken is not None and broken is not outside:
        raise broken  # upon which Tune has stopped the trials, and called back
    return outcomes


def _ending() -> Any:
    from ray import tune

    class Ending(tune.Callback):  # type: ignore[misc]  # ray is untyped here
        """Ends a run with its outcomes."""

        def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
            raise _Ended([_outcome(trial) for trial in trials])

    return Ending()


def _outcome(trial: Any) -> Outcome:
    failed = trial.status != trial.TERMINATED and trial.run_metadata.error_filename is not None
    return Outcome(dict(trial.config), dict(trial.last_result or {}), _reason(trial) if failed else "")


def _reason(trial: Any) -> str:
    """Return in one line why Tune gave a trial up, from the text that it has kept for this process."""
    try:
        with opened(Path(trial.error_file)) as text:
            text.seek(max(0, text.seek(0, 2) - LAST_BYTES))
            lines = text.read(LAST_BYTES).decode(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return lines[-1].strip() if lines else "Ray does not say why"
