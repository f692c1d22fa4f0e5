"""The jobs that rank the points of a plan before there is a partition, and those that watch its targets train again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from audits.uniqueness.watching import LOOKS, RIDGE
from audits.uniqueness.watching import RANKING as RANKED_BY
from orchestrator.apollo.design import ApolloDesign
from orchestrator.apollo.stages.exposing import EXPOSURE
from orchestrator.apollo.stages.ranking import RANKING
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.jobs.keys import digest
from orchestrator.engine.keyed_jobs import KeyedJobs
from orchestrator.engine.store.payloads import unpack_arrays

if TYPE_CHECKING:
    from audits.apollo.design.partition import Member


class RankingJobs(ApolloDesign, KeyedJobs):
    """Makes the jobs that rank points and watch targets; reads the ranking from the store where there is one."""

    def rank_job(self) -> Job:
        """Return the job that measures how much each point of the ranked pool is memorised, or how exposed it is."""
        members = tuple(self.ranking_members.values())
        document = {"data": self.data.fingerprint, "points": digest(self.ranked_points())}
        if self.exposed:
            return self.job("expose", document | self.watched_sets(members), (), self.architecture(members[0]))
        models = [self.trained(member).key for member in members]
        return self.job("rank", {**document, "models": models}, models, self.architecture(members[0]))

    def disclosure_job(self, member: Member) -> Job:
        """Return the job that watches the target ``member`` train again."""
        train = self.trained(member)
        document = {"train": train.key, "count": len(member.train), **self.watching(member)}
        return self.job("disclosure", document, (train.key,), self.architecture(member), member=member.name)

    def watched_sets(self, members: tuple[Member, ...]) -> dict[str, Any]:
        """Return what decides the exposure of the points on which ``members`` train, beside data and platform."""
        first = members[0]
        return {
            "sets": [digest(member.train) for member in members],
            "count": len(first.train),
            **self.watching(first, models=len(members)),
        }

    def watching(self, member: Member, **counted: int) -> dict[str, Any]:
        """Return how models like ``member`` are made and watched, ``counted`` beside."""
        return {
            **self.fitting(member),
            "settings": {"ranking": RANKED_BY, "looks": LOOKS, "ridge": RIDGE, **counted},
            "chunk": self.plan.compute.chunk,
            "seed": self.plan.seed,
        }

    def ranking(self) -> Any:
        """Return memorisation or exposure (N,) of the data's points, NaN where not ranked; None before it is known."""
        import numpy as np

        job = self.rank_job()
        if self.store is None or not self.store.has(job.stage, job.key):
            return None
        scores = unpack_arrays(self.store.get(job.stage, job.key).read(RANKING))
        found = np.full(len(self.data), np.nan)
        found[self.ranked_points()] = scores[EXPOSURE if self.exposed else "memorisation"]
        return found
