"""The jobs of a GNQ plan with a target: bring the given files in, look at the points at each checkpoint, score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from audits.data.duplicates import Borders, borders
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.jobs.keys import digest
from orchestrator.engine.keyed_jobs import OneArchitecture
from orchestrator.gnq.given.design import GROUPS, GivenDesign, Group

if TYPE_CHECKING:
    from audits.training.recipe import Recipe


class GivenJobs(GivenDesign, OneArchitecture):
    """Lists the jobs of one plan on its data.

    The target's files are read where the plan is laid out; a worker is handed jobs, and finds in the store what they
    need.
    """

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """None: nothing is trained."""
        return ()

    def counts(self) -> dict[Group, int]:
        """Return how many points of each group are scored."""
        found = {group: len(self.scored(self.members, group)) for group in GROUPS}
        return {group: count for group, count in found.items() if count}

    def jobs(self) -> Sequence[Job]:
        """Return every job of the plan."""
        given = self.given_job()
        counts = self.counts()
        looks = [job for group, count in counts.items() for job in self.look_jobs(given.key, group, count)]
        return [given, *looks, self.score_job(given.key, counts)]

    def same(self, job: Job) -> Job:
        """Return this plan's own job in the place of ``job``: the same one, unless ``job`` is another plan's."""
        if job.stage == "given":
            return self.given_job()
        if job.stage == "score":
            return self.score_job(job.needs[0], job.document["counts"])
        return self.look_jobs(job.needs[0], cast(Group, job.kind), job.document["count"])[job.unit]

    def given_job(self) -> Job:
        """Return the job that puts the given weights and members into the store."""
        document = {
            "weights": [weights.digest for weights in self.checkpoints],
            "members": digest(self.members),
            "count": len(self.members),
        }
        return self.job("given", document, (), ())

    def look_jobs(self, given: str, group: Group, count: int) -> list[Job]:
        """Return the jobs that look at ``count`` points of a group, a job a checkpoint, from the artefact ``given``."""
        audit = self.plan.audit
        found = []
        for place in range(len(self.plan.target.checkpoints)):
            document = {
                "given": given,
                "place": place,
                "data": self.data.fingerprint,
                "model": self.plan.model.model_dump(mode="json"),
                "group": group,
                "count": count,
                "seed": self.plan.seed,
                "modes": list(audit.modes),
                "ridge": audit.ridge,
                "chunk": self.plan.compute.chunk,
            }
            found.append(self.job("look", document, (given,), self.architecture, kind=group, unit=place))
        return found

    def score_job(self, given: str, counts: dict[Group, int]) -> Job:
        """Return the job that puts what was seen of all points into one table."""
        looks = [job.key for group, count in counts.items() for job in self.look_jobs(given, group, count)]
        document = {"given": given, "looks": looks, "counts": counts, "weights": self.weights_of_steps}
        return self.job("score", document, (given, *looks), ())

    def borders(self) -> Borders:
        """Return what is kept apart: points that the model was trained on, and controls, which are asked about."""
        members, controls = (self.scored(self.members, group) for group in GROUPS)
        found = borders(len(self.data), [members, controls], controls[:0], None)
        return Borders(found.side, controls)
