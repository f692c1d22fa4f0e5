"""Pieces of work and lists of them: what a design makes and the pools do."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Job:
    """One piece of work of a run.

    ``stage`` names the body (``Kind.stages``), ``key`` its artefact, ``needs`` the keys it reads, ``document`` all that
    decides the artefact, ``plan`` the hash of the plan that it belongs to. The other fields are the job's place in its
    plan, as far as the kind of audit uses them: ``member`` names a model, ``label`` a method, an arm or a group of
    models, ``kind`` what is gathered, ``shadow_set``, ``unit`` and ``shard`` count units of work.
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
class Reference:
    """A model in the store: its stage and key."""

    stage: str
    key: str


def of_stage(jobs: Iterable[Job], *stages: str) -> tuple[Job, ...]:
    """Return the jobs of one of ``stages``, in their order."""
    return tuple(job for job in jobs if job.stage in stages)


def keys_by_stage(jobs: Iterable[Job]) -> dict[str, list[str]]:
    """Return stage → keys of ``jobs``."""
    found: dict[str, list[str]] = {}
    for job in jobs:
        found.setdefault(job.stage, []).append(job.key)
    return found


def missing(jobs: Iterable[Job], present: Mapping[str, Container[str]]) -> Iterator[Job]:
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
