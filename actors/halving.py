"""Asynchronous successive halving by Ray Tune's own scheduler (ASHA, arXiv 1810.05934), wherever trials run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Literal


class Halving:
    """Decides which trials stop at a rung; trials go by number, so that decisions made earlier can be told again.

    A rung is a number of ``parts`` done, ``grace`` · ``reduction``^k, and the last one is ``parts``. A trial goes on
    from a rung where its value is among the best 1/``reduction`` of the values that were told there before its own.
    Ray's scheduler is asked through its public methods, with a stand-in for Tune's trial.
    """

    def __init__(self, parts: int, grace: int, reduction: int, mode: Literal["min", "max"]) -> None:
        from ray.tune.schedulers import AsyncHyperBandScheduler

        self.parts = parts
        self.scheduler = AsyncHyperBandScheduler(
            time_attr="parts", metric="value", mode=mode, max_t=parts, grace_period=grace, reduction_factor=reduction
        )
        self.trials: dict[int, Any] = {}

    def stops(self, number: int, parts: int, value: float) -> bool:
        """Return whether a trial ends now that ``parts`` of its parts have come to ``value``; a whole one always."""
        if number not in self.trials:
            self.trials[number] = SimpleNamespace(trial_id=str(number))
            self.scheduler.on_trial_add(None, self.trials[number])
        told = {"parts": parts, "value": value}
        stop: bool = self.scheduler.on_trial_result(None, self.trials[number], told) == self.scheduler.STOP
        if stop:
            self.scheduler.on_trial_complete(None, self.trials[number], told)
        return stop
