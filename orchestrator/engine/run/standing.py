"""The state of a run's jobs, read off its store while the run goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from orchestrator.engine.jobs.job import Job
from orchestrator.engine.progress import Look, now
from orchestrator.engine.setting import Setting
from orchestrator.engine.store.store import Store

Left = Sequence[Sequence[Job]]
"""Jobs that are not done, of each setting."""

LOOK_AHEAD = 256
"""Jobs that are not done at which a look ends, shared among settings and stages: jobs are done about in turn."""


class Standing:
    """What is done of ``settings``, of whose jobs ``left`` (per setting) were not done when the run began.

    The store is asked once for each job that is done, and at each look for at most about ``LOOK_AHEAD`` that are not;
    so counts may lag behind, and never run ahead. Nothing is asked of workers: it is the same for jobs in this process,
    on a group, on actors and in trials.
    """

    def __init__(self, store: Store, settings: Sequence[Setting], left: Left) -> None:
        self.store = store
        unique = {job.key: job for setting in settings for job in setting.jobs}
        self.needed = Counter(job.stage for job in unique.values())
        self.waiting = {job.key: job.stage for jobs in left for job in jobs}
        self.open = {setting.name: (setting, list(jobs)) for setting, jobs in zip(settings, left, strict=True)}
        self.sizes = {setting.name: len(setting.jobs) for setting in settings}

    def look(self) -> list[Setting]:
        """Ask the store what is done by now; return the settings of which everything is, each once."""
        groups = sum(len({job.stage for job in jobs}) for _, jobs in self.open.values())
        ahead = max(2, LOOK_AHEAD // max(groups, 1))
        absent: set[str] = set()
        for name, (setting, jobs) in self.open.items():
            self.open[name] = (setting, self.still_waiting(jobs, absent, ahead))
        done = [setting for setting, jobs in self.open.values() if not jobs]
        for setting in done:
            del self.open[setting.name]
        return done

    def still_waiting(self, jobs: Sequence[Job], absent: set[str], ahead: int) -> list[Job]:
        """Return those of a setting's jobs that are not known to be done; asks for ``ahead`` of each stage in vain."""
        in_vain: Counter[str] = Counter()
        still = []
        for job in jobs:
            if job.key not in self.waiting:
                continue
            still.append(job)
            if in_vain[job.stage] == ahead or any(need in self.waiting for need in job.needs):
                continue
            if job.key not in absent and self.store.has(job.stage, job.key):
                del self.waiting[job.key]
                still.pop()
            else:
                absent.add(job.key)
                in_vain[job.stage] += 1
        return still

    def seen(self, compared: Mapping[str, Mapping[str, float]]) -> Look:
        """Return what is known to be done, and the numbers of the settings of which everything is."""
        waiting = Counter(self.waiting.values())
        done = {stage: count - waiting[stage] for stage, count in self.needed.items()}
        left = {name: len(jobs) for name, (_, jobs) in self.open.items()}
        settings = {name: (size - left.get(name, 0), size) for name, size in self.sizes.items()}
        return Look(now(), dict(self.needed), done, settings, dict(compared))
