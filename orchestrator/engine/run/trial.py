"""One setting of a sweep as a Ray Tune trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.engine.jobs.job import missing
from orchestrator.engine.run.worker import OpenContexts
from orchestrator.engine.setting import Setting


@dataclass(frozen=True)
class RunSetting:
    """A Tune trial: does what is left of one setting, over models that are ready.

    ``plans``: setting name → hash of its plan; ``measures``: see ``Sweep``. Called with ``{"setting": name}``; what the
    store has is not done again, so a repeated trial costs nothing. Returns the numbers by which the kind compares
    settings, or the distance to retraining.
    """

    plans: Mapping[str, str]
    contexts: OpenContexts
    measures: str

    def __call__(self, config: Mapping[str, Any]) -> dict[str, float]:
        """Run one setting."""
        kind = self.contexts.kind
        context = self.contexts.open(self.plans[config["setting"]])
        jobs = context.design.jobs()
        tuning = kind.tuning if self.measures == "utility" else None
        if tuning is not None:
            jobs = tuning.jobs(jobs)
        for job in missing(jobs, kind.present(context.store)):
            context.perform(job)
        setting = Setting(config["setting"], {}, context.plan, tuple(jobs))
        if tuning is not None:
            return {"distance": tuning.row(setting, context.store)["distance"]}
        return kind.comparison(setting, context.store)
