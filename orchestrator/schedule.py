"""From a plan to its schedule: every job that must be done, and a job's own place in the plan."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, TypeAlias

from orchestrator.jobs import Job, Schedule
from orchestrator.stage_jobs import StageJobs

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from orchestrator.disclosure.schedule import DisclosureScheduler
    from orchestrator.membership.schedule import MembershipScheduler
    from orchestrator.plan_base import BasePlan
    from orchestrator.store import Store


class Scheduler(StageJobs):
    """Lists the jobs of one plan on one data set.

    A plan that audits memorised or exposed points has a schedule once ``ranking_jobs`` are done and their ranking is in
    the store.
    """

    def ranking_jobs(self) -> tuple[Job, ...]:
        """Return the jobs that rank the points: what must be done before there is a partition."""
        if not self.ranked:
            return ()
        models = () if self.exposed else self.ranking_members.values()
        return (*(self.train_job(member) for member in models), self.rank_job())

    def schedule(self) -> Schedule:
        """Return every job of the plan."""
        from audits.evidence import KINDS

        sets, methods = range(self.partition.split.shadow_sets), self.plan.unlearning
        places = [(shadow_set, shard) for shadow_set in sets for shard in range(self.shards(shadow_set))]
        members = self.partition.members
        changed = [entry for entry in methods if entry.method != "identity"]
        return Schedule(
            train_jobs=tuple(self.train_job(member) for member in members),
            unlearn_jobs=tuple(self.unlearn_job(member, entry) for entry in changed for member in members),
            utility_units=tuple(self.utility_job(member, entry) for entry in methods for member in self.targets),
            trace_units=tuple(
                self.trace_job(*place, kind) for place in places for kind in self.kinds if KINDS[kind].traced
            ),
            search_units=tuple(
                self.search_job(shadow_set, entry, kind, shard)
                for shadow_set, shard in places
                for entry in methods
                for kind in self.kinds
            ),
            score_units=tuple(self.score_job(shadow_set, entry) for shadow_set in sets for entry in methods),
            radius_units=tuple(
                self.radius_job(shadow_set, entry)
                for shadow_set in sets
                for entry in methods
                if self.plan.audit.radii and entry.method not in ("identity", "retrain")
            ),
            disclosure_units=tuple(
                self.disclosure_job(member) for member in self.targets if self.plan.audit.disclosure
            ),
        )

    def job_like(self, job: Job) -> Job:
        """Return this plan's own job in the place of ``job``: the same one, unless ``job`` is another plan's."""
        match job.stage:
            case "train":
                return self.train_job(self.member(job.member))
            case "rank":
                return self.rank_job()
            case "unlearn":
                return self.unlearn_job(self.by_name[job.member], self.by_label[job.label])
            case "utility":
                return self.utility_job(self.by_name[job.member], self.by_label[job.label])
            case "trace":
                return self.trace_job(job.shadow_set, job.shard, job.kind)
            case "search":
                return self.search_job(job.shadow_set, self.by_label[job.label], job.kind, job.shard)
            case "radii":
                return self.radius_job(job.shadow_set, self.by_label[job.label])
            case "disclosure":
                return self.disclosure_job(self.by_name[job.member])
        return self.score_job(job.shadow_set, self.by_label[job.label])


AnyScheduler: TypeAlias = "Scheduler | MembershipScheduler | DisclosureScheduler"


def open_scheduler(
    plan: BasePlan, store: Store | None = None, data: Dataset | None = None, device: str | None = None
) -> AnyScheduler:
    """Return the scheduler of a plan, of the class that its kind asks for, on its data set or on ``data``."""
    from orchestrator.kinds import audit_kind

    found, place = data or data_of(plan.data.name, plan.data.root), device or device_of(plan)
    opened: AnyScheduler = audit_kind(plan.kind).scheduler(plan, found, place, store)
    return opened


@cache
def data_of(name: str, root: str | None) -> Dataset:
    """Return the data set, loaded once per process."""
    from audits.data.catalogue import load

    return load(name, root)


def device_of(plan: BasePlan) -> str:
    """Return "cpu" or "cuda" (with its index when the plan names one): what ``compute.device`` comes to here."""
    if plan.compute.device != "auto":
        return plan.compute.device
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def schedule(plan: BasePlan) -> Schedule:
    """Return every job of ``plan``."""
    return open_scheduler(plan).schedule()
