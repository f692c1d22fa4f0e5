"""One setting of a sweep as a Ray Tune trial."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from actors.job_queue import ELSEWHERE_SECONDS
from actors.jobs import Elsewhere
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.worker import OpenContexts, WorkerContext
from orchestrator.engine.setting import Setting


@dataclass(frozen=True)
class RunSetting:
    """A Tune trial: does what is left of one setting, over models that are ready.

    ``plans``: setting name → hash of its plan; ``measures``: see ``Sweep``; ``todo``: setting name → keys of the jobs
    that were not done when the trials began. Called with ``{"setting": name}``; what the store has is not done again,
    so a repeated trial costs nothing. Returns the numbers by which the kind compares settings, or the distance to
    retraining.
    """

    plans: Mapping[str, str]
    contexts: OpenContexts
    measures: str
    todo: Mapping[str, frozenset[str]]

    def __call__(self, config: Mapping[str, Any]) -> dict[str, float]:
        """Run one setting."""
        kind = self.contexts.kind
        context = self.contexts.open(self.plans[config["setting"]])
        jobs = context.design.jobs()
        tuning = kind.tuning if self.measures == "utility" else None
        if tuning is not None:
            jobs = tuning.jobs(jobs)
        for job in jobs:
            if job.key in self.todo[config["setting"]] and not context.store.has(job.stage, job.key):
                do_when_free(self.contexts, context, job)
        setting = Setting(config["setting"], {}, context.plan, tuple(jobs))
        if tuning is not None:
            return tuning.comparison(setting, context.store)
        return kind.comparison(setting, context.store)


def do_when_free(contexts: OpenContexts, context: WorkerContext[Any], job: Job) -> None:
    """Do ``job``, or wait while another driver does it."""
    while True:
        try:
            return contexts.do(context, job)
        except Elsewhere:
            time.sleep(ELSEWHERE_SECONDS)
