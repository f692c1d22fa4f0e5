"""One setting of a sweep as a Ray Tune trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.jobs import STAGES, missing
from orchestrator.setting import Setting
from orchestrator.stages import OpenWorkshops

if TYPE_CHECKING:
    import pyarrow as pa


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
        from audits.evaluation.summary import cells, per_target_auc
        from orchestrator.score_table import whole_table
        from orchestrator.stages import SCORES
        from orchestrator.store import unpack_table

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
        parts = [
            (config["setting"], unpack_table(store.get("score", job.key).read(SCORES))) for job in jobs.score_units
        ]
        columns = {name: column.to_numpy() for name, column in zip_columns(whole_table(parts))}
        return {f"{cell.unlearner}.{cell.attack}.auc": mean(per_target_auc(cell)) for cell in cells(columns)}


def zip_columns(table: pa.Table) -> list[tuple[str, Any]]:
    """Return the columns of a table by name."""
    return list(zip(table.column_names, table.columns, strict=True))


def mean(values: Mapping[int, float]) -> float:
    """Return the mean of the values."""
    return sum(values.values()) / len(values)
