"""All jobs of an Apollo plan, and a job's own place in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Self

from audits.apollo.evidence import KINDS
from orchestrator.apollo.rehearsal_jobs import RehearsalJobs
from orchestrator.engine.jobs.job import Job


class ApolloJobs(RehearsalJobs):
    """Lists the jobs of one plan on one data set.

    A plan that audits memorised or exposed points has a schedule once ``ranking_jobs`` are done and their ranking is in
    the store.
    """

    def first_jobs(self) -> tuple[Job, ...]:
        """Return the jobs that rank the points: what must be done before there is a partition."""
        if not self.ranked:
            return ()
        models = () if self.exposed else self.ranking_members.values()
        return (*(self.train_job(member) for member in models), self.rank_job())

    def jobs(self) -> Sequence[Job]:
        """Return every job of the plan but those that rank points."""
        sets, methods, audit = range(self.partition.split.shadow_sets), self.plan.unlearning, self.plan.audit
        places = [(shadow_set, shard) for shadow_set in sets for shard in range(self.shards(shadow_set))]
        members = self.partition.members
        changed = [entry for entry in methods if entry.method != "identity"]
        unlearned = [(member, entry) for entry in changed for member in members if not self.is_given(member, entry)]
        approximate = [entry for entry in changed if entry.method != "retrain"]
        traced = [kind for kind in self.kinds if KINDS[kind].traced]
        return [
            *self.given_jobs(),
            *(self.train_job(member) for member in members),
            *(self.unlearn_job(*each) for each in unlearned),
            *(self.own_start_job(member) for member in (self.targets if audit.radii else ())),
            *(self.utility_job(member, entry) for entry in methods for member in self.targets),
            *(self.trace_job(*place, kind) for place in places for kind in traced),
            *(
                self.search_job(shadow_set, entry, kind, shard)
                for shadow_set, shard in places
                for entry in methods
                for kind in self.kinds
            ),
            *(self.score_job(shadow_set, entry) for shadow_set in sets for entry in methods),
            *(self.radius_job(place, entry) for place in sets for entry in (approximate if audit.radii else ())),
            *(self.disclosure_job(member) for member in (self.targets if audit.disclosure else ())),
        ]

    def priced(self) -> Self:
        """Return a design with jobs of the same sizes, also before the points are ranked.

        Until then nobody knows which points are audited: random ones stand in, in a data set of another fingerprint, so
        that no job passes for one of a plan that audits random points.
        """
        ranking = self.first_jobs()
        if not ranking or self.ranking() is not None:
            return self
        unranked = dataclasses.replace(self.data, fingerprint=f"ranked by {ranking[-1].key}")
        plan = self.plan.changed({"split.points": "random"})
        return type(self)(plan, unranked, self.device, stages=self.stages)

    @property
    def weight(self) -> int:
        """A rough measure of the work after training: the steps of the search."""
        return int(self.plan.audit.search.steps)

    def same(self, job: Job) -> Job:
        """Return this plan's own job in the place of ``job``: the same one, unless ``job`` is another plan's."""
        match job.stage:
            case "given":
                return self.given_job(job.member)
            case "train":
                return self.train_job(self.member(job.member))
            case "rank" | "expose":
                return self.rank_job()
            case "unlearn":
                return self.unlearn_job(self.by_name[job.member], self.by_label[job.label])
            case "own_start":
                return self.own_start_job(self.by_name[job.member])
            case "utility":
                return self.utility_job(self.by_name[job.member], self.by_label[job.label])
            case "trace":
                return self.trace_job(job.shadow_set, job.shard, job.kind)
            case "search":
                return self.search_job(job.shadow_set, self.by_label[job.label], job.kind, job.shard)
            case "rehearse":
                return self.rehearse_job(job.shadow_set, self.by_label[job.label], job.kind, job.shard)
            case "appraise":
                return self.appraise_job(job.shadow_set, self.by_label[job.label], job.kind)
            case "radii":
                return self.radius_job(job.shadow_set, self.by_label[job.label])
            case "disclosure":
                return self.disclosure_job(self.by_name[job.member])
        return self.score_job(job.shadow_set, self.by_label[job.label])
