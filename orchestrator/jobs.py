"""Pieces of work and lists of them: what a scheduler makes and the pools do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

STAGES = (
    *("train", "rank", "unlearn", "utility", "trace", "search", "score", "radii", "disclosure"),  # apollo
    *("fit", "select", "ask", "judge"),  # tmia
    *("watch", "look", "defend", "invert", "assess"),  # gnq
)
"""What runs are made of; each names a body in ``orchestrator.stages``."""

NO_MODELS = ("utility", "look")
"""Stages of the population's queue that make no model."""


@dataclass(frozen=True)
class Job:
    """One piece of work of a run.

    ``stage`` names the body (``orchestrator.stages``), ``key`` its artefact, ``needs`` the keys it reads, ``plan`` the
    hash of the plan that it belongs to. ``member`` is a model of the partition (train, unlearn, utility, disclosure),
    ``label`` an unlearning method, ``kind`` a kind of evidence (trace, search), ``shadow_set`` and ``shard`` the
    candidates (trace, search, score, radii). In membership audits ``kind`` is what is asked, ``label`` the group of
    models, ``unit`` which of them, ``shard`` which candidates. In disclosure audits ``label`` is the arm and ``unit``
    the pool (invert, assess), or ``unit`` the checkpoint and ``shard`` the rows (look).
    """

    stage: str
    key: str
    needs: tuple[str, ...]
    document: Mapping[str, Any]
    plan: str
    member: str = ""
    label: str = ""
    kind: str = ""
    shadow_set: int = -1
    shard: int = -1
    unit: int = -1


@dataclass(frozen=True)
class Schedule:
    """All jobs of a plan, by stage, each list in a fixed order that follows the design.

    A membership audit has training jobs (fit), traces (select), searches (ask) and scores (judge); a disclosure audit
    has training jobs (watch), looks at what these kept (look), models made from them in the place of unlearned ones
    (defend), images sought in both in the place of traces (invert), and scores (assess).
    """

    train_jobs: tuple[Job, ...]
    unlearn_jobs: tuple[Job, ...]
    utility_units: tuple[Job, ...]
    trace_units: tuple[Job, ...]
    search_units: tuple[Job, ...]
    score_units: tuple[Job, ...]
    radius_units: tuple[Job, ...] = ()
    disclosure_units: tuple[Job, ...] = ()
    look_units: tuple[Job, ...] = ()

    @property
    def models(self) -> tuple[Job, ...]:
        """Training and unlearning jobs."""
        return self.train_jobs + self.unlearn_jobs

    @property
    def population(self) -> tuple[Job, ...]:
        """What one queue does before the attacks: models, what is seen of them and what is measured."""
        return self.train_jobs + self.look_units + self.unlearn_jobs + self.utility_units

    @property
    def attacks(self) -> tuple[Job, ...]:
        """What the attack pool does: traces, searches, scores, radii and targets watched while they train again."""
        return self.trace_units + self.search_units + self.score_units + self.radius_units + self.disclosure_units

    @property
    def everything(self) -> tuple[Job, ...]:
        """All jobs, each behind those that it needs."""
        return self.population + self.attacks

    def of_targets(self) -> Schedule:
        """Return the jobs that make and measure targets: no shadow, no attack."""
        targets = {job.member for job in self.utility_units}
        train, unlearn = (
            tuple(job for job in jobs if job.member in targets) for jobs in (self.train_jobs, self.unlearn_jobs)
        )
        return Schedule(train, unlearn, self.utility_units, (), (), ())

    def keys(self) -> dict[str, list[str]]:
        """Return stage → keys of every artefact that the plan refers to."""
        found: dict[str, list[str]] = {}
        for job in self.everything:
            found.setdefault(job.stage, []).append(job.key)
        return found


@dataclass(frozen=True)
class Reference:
    """A model in the store: its stage and key."""

    stage: str
    key: str


def missing(jobs: Iterable[Job], present: Mapping[str, set[str]]) -> Iterator[Job]:
    """Yield the jobs whose artefact is not in the store (``present``: stage → keys), each key once."""
    seen: set[str] = set()
    for job in jobs:
        if job.key not in present.get(job.stage, set()) and job.key not in seen:
            seen.add(job.key)
            yield job


def in_turn(jobs: Sequence[Job]) -> list[Job]:
    """Return ``jobs`` with each behind the last one that it needs, not behind all of an earlier stage.

    Stages take turns, so that the pace of the first jobs tells the time of all. Needs stand earlier in ``jobs``.
    """
    place: dict[str, int] = {}
    for index, job in enumerate(jobs):
        place[job.key] = max((place[need] for need in job.needs if need in place), default=index)
    return sorted(jobs, key=lambda job: place[job.key])
