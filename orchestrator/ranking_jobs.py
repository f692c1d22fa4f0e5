"""The jobs that rank the points of a plan before there is a partition, and those that watch its targets train again."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from orchestrator.design import Design
from orchestrator.jobs import Job, Reference
from orchestrator.keyed_jobs import KeyedJobs
from orchestrator.keys import digest

if TYPE_CHECKING:
    from audits.data.partition import Member
    from orchestrator.store import Store


class RankingJobs(Design, KeyedJobs):
    """Makes the jobs that rank points and watch targets; reads the ranking from the store where there is one."""

    store: Store | None

    @abstractmethod
    def trained(self, member: Member) -> Reference:
        """Return where the trained model of ``member`` stands."""

    def rank_job(self) -> Job:
        """Return the job that measures how much each point of the ranked pool is memorised, or how exposed it is."""
        members = tuple(self.ranking_members.values())
        document = {"data": self.data.fingerprint, "points": digest(self.ranked_points())}
        if self.exposed:
            document |= self.watched_sets(members)
            return self.job("rank", document, (), self.architecture(members[0]))
        models = [self.trained(member).key for member in members]
        return self.job("rank", {**document, "models": models}, models, self.architecture(members[0]))

    def disclosure_job(self, member: Member) -> Job:
        """Return the job that watches the target ``member`` train again."""
        train = self.trained(member)
        document = {"train": train.key, "count": len(member.train), **self.watching(member)}
        return self.job("disclosure", document, (train.key,), self.architecture(member), member=member.name)

    def watched_sets(self, members: tuple[Member, ...]) -> dict[str, Any]:
        """Return what decides the exposure of the points on which ``members`` train, beside data and platform."""
        from orchestrator.codeversion import code_version

        first = members[0]
        return {
            "sets": [digest(member.train) for member in members],
            "count": len(first.train),
            **self.watching(first, models=len(members)),
            "watched_by": code_version("disclosure", tuple(part.__module__ for part in self.architecture(first))),
        }

    def watching(self, member: Member, **counted: int) -> dict[str, Any]:
        """Return how models like ``member`` are made and watched, ``counted`` beside."""
        from audits.disclosure.watching import LOOKS, RANKING, RIDGE

        return {
            **self.fitting(member),
            "settings": {"ranking": RANKING, "looks": LOOKS, "ridge": RIDGE, **counted},
            "chunk": self.plan.compute.chunk,
            "seed": self.plan.seed,
        }

    def ranking(self) -> Any:
        """Return memorisation or exposure (N,) of the data's points, NaN where not ranked; None before it is known."""
        import numpy as np

        from orchestrator.stages import RANKING
        from orchestrator.stages.disclosure import EXPOSURE
        from orchestrator.store import unpack_arrays

        key = self.rank_job().key
        if self.store is None or not self.store.has("rank", key):
            return None
        scores = unpack_arrays(self.store.get("rank", key).read(RANKING))
        found = np.full(len(self.data), np.nan)
        found[self.ranked_points()] = scores[EXPOSURE if self.exposed else "memorisation"]
        return found
