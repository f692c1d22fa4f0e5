"""``compute.workers: auto``: Ray's workers where they are sooner done than the calling process, by a rough estimate.

Starting Ray and its workers takes longer than small plans take in one process. The work that is left is estimated from
a few training steps on random data (``TrainingProbe``, a few seconds at the most); the result of a plan does not depend
on the choice, so an estimate that is off by a factor of two costs time and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.engine.durations import seconds
from orchestrator.engine.timings import Timings

if TYPE_CHECKING:
    from orchestrator.engine.jobs.job import Job
    from orchestrator.engine.kind import Kind
    from orchestrator.engine.plan.base import BasePlan

START_SECONDS = 20.0
"""What starting Ray and workers that import torch takes (docs/results/benchmarks.md, fixed cost of a population)."""
EFFICIENCY = 0.8
"""What each of several workers does of the work of a process alone (ibid.): they share a machine."""
ENOUGH_SECONDS = 3600.0
"""Work from which on nothing more is counted: workers pay in any case."""

Work = Sequence[tuple["BasePlan", Sequence["Job"]]]
"""Plans, and the jobs of each that are left."""


@dataclass(frozen=True)
class Choice:
    """How many workers (0: the calling process), and why, for one line on a terminal."""

    workers: int
    reason: str


def choose_workers(kind: Kind, work: Work, device: str, most: int) -> Choice:
    """Return ``most`` workers or none, whichever is sooner done with ``work`` on this machine.

    With a GPU it is ``most``, and likewise where the work cannot be estimated.
    """
    if device != "cpu":
        return Choice(most, "one process a GPU")
    if most == 1:
        return Choice(0, "this machine has one CPU to use")
    try:
        needed = work_seconds(kind, work, device)
    except Exception as error:  # an estimate must not end a run: what is wrong with the plan, its jobs will say
        return Choice(most, f"the work could not be estimated: {type(error).__name__}")
    alone, with_workers = wall_seconds(needed, 0), wall_seconds(needed, most)
    if needed >= ENOUGH_SECONDS:  # the rest was not counted
        reason = f"over {seconds(ENOUGH_SECONDS)} of work"
    else:
        reason = f"about {seconds(alone)} of work, {seconds(with_workers)} with {most} workers and their start"
    return Choice(most if with_workers < alone else 0, reason)


def wall_seconds(work: float, workers: int) -> float:
    """Return how long ``work`` seconds of one process take with ``workers`` (0: in the calling process)."""
    if not workers or not work:
        return work
    return START_SECONDS + work / (workers * EFFICIENCY if workers > 1 else 1.0)


def work_seconds(kind: Kind, work: Work, device: str) -> float:
    """Return the seconds that jobs take in one process, those that plans share once; counts up to ENOUGH_SECONDS."""
    total, seen, timings = 0.0, set(), Timings()
    for plan, jobs in work:
        probe = kind.probe(plan, device, timings)
        for job in jobs:
            if job.key not in seen:
                seen.add(job.key)
                total += probe.seconds(job)
            if total >= ENOUGH_SECONDS:
                return total
    return total
