"""One run of Ray Tune over trials that report what became of them: its folder, its tuner, and how Ctrl-C reaches it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from actors.cluster import run_folder
from actors.environment import environment
from actors.interrupts import first_interrupt_noted, interrupt_held
from actors.jobs import MAX_LOSSES, Workers

MakeTuner = Callable[..., Any]
"""Makes the tuner of a run: ``(callback, space=None, **fields of TuneConfig)``."""


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
                    callbacks=[callback],
                ),
            )

        yield make, run_name


def fit(tuner: Any, interrupted: threading.Event) -> Any:
    """Run the trials and return their results; the first Ctrl-C sets ``interrupted`` and goes no further.

    Tune's own handler would end the run as if all were well, and stay installed afterwards.
    """
    with environment({"TUNE_DISABLE_SIGINT_HANDLER": "1"}), first_interrupt_noted(interrupted):
        return tuner.fit()


def reason_of(result: Any) -> str:
    """Return in one line why Tune gave a trial up."""
    return str(result.error).strip().splitlines()[-1]
