"""One setting of a sweep as a Ray Tune trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.jobs import STAGES, missing
from orchestrator.setting import Setting
from orchestrator.stages import OpenWorkshops


@dataclass(frozen=True)
class RunSetting:
    """A Tune trial: does what is left of one setting, over models that are ready.

    ``plans``: setting name → hash of its plan; ``measures``: see ``Sweep``. Called with ``{"setting": name}``; what the
    store has is not done again, so a repeated trial costs nothing. Returns the mean AUC over targets of each unlearning
    method × attack, or the distance to retraining.
    """

    plans: Mapping[str, str]
    workshops: OpenWorkshops
    measures: str

    def __call__(self, config: Mapping[str, Any]) -> dict[str, float]:
        """Run one setting."""
        workshop = self.workshops.open(self.plans[config["setting"]])
        store, jobs = workshop.store, workshop.scheduler.schedule()
        if self.measures == "utility":
            jobs = jobs.of_targets()
        present = {stage: store.keys(stage) for stage in STAGES}
        for job in missing(jobs.everything, present):
            workshop.perform(job)
        if self.measures == "utility":
            from orchestrator.tuning import row

            found = row(Setting(config["setting"], {}, workshop.plan, jobs), store)
            return {"distance": found["distance"]}
        from orchestrator.kinds import audit_kind

        setting = Setting(config["setting"], {}, workshop.plan, jobs)
        return audit_kind(workshop.plan.kind).summary(setting, store)
