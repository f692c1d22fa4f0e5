"""Parts of a plan's targets, each with the jobs that judge it: what a trial of a search does at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from orchestrator.engine.jobs.job import Job
from orchestrator.engine.kind import Kind


def parts_of(kind: Kind, jobs: Iterable[Job]) -> list[list[Job]]:
    """Return the jobs that make scores, by their part of the targets: a shadow set, a pool; in order."""
    parts: dict[tuple[int, int], list[Job]] = {}
    for job in jobs:
        if kind.stage(job.stage).makes == "scores":
            parts.setdefault((job.shadow_set, job.unit), []).append(job)
    return list(parts.values())


def needed_for(jobs: Sequence[Job], wanted: Iterable[Job]) -> list[Job]:
    """Return the ``wanted`` ones of ``jobs`` and all that they need, directly or not, in the order of ``jobs``."""
    by_key = {job.key: job for job in jobs}
    found: set[str] = set()
    waiting = [job.key for job in wanted]
    while waiting:
        key = waiting.pop()
        if key in by_key and key not in found:
            found.add(key)
            waiting += by_key[key].needs
    return [job for job in by_key.values() if job.key in found]


def judging(kind: Kind, jobs: Sequence[Job], parts: int) -> list[Job]:
    """Return what the first ``parts`` parts of the targets need, and the measurements of the models among it."""
    found = needed_for(jobs, (job for part in parts_of(kind, jobs)[:parts] for job in part))
    there = {job.key for job in found}
    measured = {job.key for job in kind.making_models(jobs) if kind.stage(job.stage).makes == "measurement"}
    return [job for job in jobs if job.key in there or (job.key in measured and there.issuperset(job.needs))]


def rungs(parts: int, grace: int, reduction: int) -> list[int]:
    """Return after how many parts trials are compared: ``grace`` · ``reduction``^k below ``parts``, and all."""
    found = []
    while grace < parts:
        found.append(grace)
        grace *= reduction
    return [*found, parts]
