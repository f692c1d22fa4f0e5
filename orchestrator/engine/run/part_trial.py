"""One trial of a search: a setting whose targets are judged part after part."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.target_parts import judging
from orchestrator.engine.run.trial import do_when_free
from orchestrator.engine.run.worker import OpenContexts, WorkerContext
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.owner import this_process


@dataclass(frozen=True)
class PartTrial:
    """Does what is left of a trial up to each of ``rungs``; ``plans``: JSON of its resolved plans by hash, one a seed.

    Each report has the ``parts`` done, the ``numbers`` by which the kind compares settings (means over the plans) on
    these parts, and the ``seconds`` so far. What the store has is not done again. A model that two trials need at the
    same time is made by one of them.
    """

    contexts: OpenContexts
    rungs: tuple[int, ...]
    alone: bool
    """Whether this is the only process that does jobs of the run."""

    def __call__(self, config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Run a trial; yields a report at each rung."""
        begin = time.perf_counter()
        plans = json.loads(config["plans"])
        owner = self.contexts.owner if self.alone or self.contexts.owner is None else this_process()
        contexts = replace(self.contexts, plans=plans, owner=owner)
        opened = [_Opened(contexts, contexts.open(name)) for name in plans]
        for rung in self.rungs:
            numbers = [each.numbers_on(rung, whole=rung == self.rungs[-1]) for each in opened]
            yield {"parts": rung, "numbers": means(numbers), "seconds": time.perf_counter() - begin}


class _Opened:
    """One plan of a trial in a worker, and which of its jobs are known to be done."""

    def __init__(self, contexts: OpenContexts, context: WorkerContext[Any]) -> None:
        self.contexts = contexts
        self.context = context
        self.jobs = list(context.laid_out.jobs())
        self.done: set[str] = set()

    def numbers_on(self, parts: int, *, whole: bool) -> dict[str, float]:
        """Do the jobs of the first ``parts`` parts, or all that there are; return the numbers on these."""
        wanted = self.jobs if whole else judging(self.contexts.kind, self.jobs, parts)
        for job in wanted:
            self.do(job)
        setting = Setting("trial", {}, self.context.plan, tuple(wanted))
        return self.contexts.kind.comparison(setting, self.context.store)

    def do(self, job: Job) -> None:
        """Do a job, unless it is done."""
        if job.key not in self.done and not self.context.store.has(job.stage, job.key):
            do_when_free(self.contexts, self.context, job)
        self.done.add(job.key)


def means(numbers: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the mean of each number that all have."""
    shared = [name for name in numbers[0] if all(name in each for each in numbers)]
    return {name: float(sum(each[name] for each in numbers)) / len(numbers) for name in shared}
