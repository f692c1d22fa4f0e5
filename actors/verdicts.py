"""By whose fault workers die: a job's, which is given up, a machine's, which is left out, or nobody's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from actors.job_queue import JobQueue
from actors.jobs import MAX_LOSSES

SUSPECT_SECONDS = 20.0
"""Ray notices a lost machine after 14 to 17 s: only then is known whether a worker died alone."""
NODE_FAULTS = 3
"""Workers that died on one machine, at different jobs and with none finished between, before it is left out."""


@dataclass
class _Suspect:
    worker: str
    node: str
    since: float


@dataclass
class Verdicts:
    """Jobs whose worker died are suspects until somebody says whether its machine lives.

    ``given_up``: why the run cannot go on; ``left_out``: machine → why it gets no more work.
    """

    queue: JobQueue
    clock: Callable[[], float]
    given_up: str | None = None
    left_out: dict[str, str] = field(default_factory=dict)
    _suspects: dict[str, _Suspect] = field(default_factory=dict)
    _early: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _faults: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def suspect(self, key: str, worker: str, node: str) -> None:
        """Note that ``worker`` died on ``node`` with what it had taken."""
        self._suspects[key] = _Suspect(worker, node, self.clock())

    def old_suspects(self) -> dict[str, str]:
        """Return the jobs that can be judged by now, each with the node on which its worker died."""
        now = self.clock()
        return {key: suspect.node for key, suspect in self._suspects.items() if now - suspect.since > SUSPECT_SECONDS}

    def acquit(self, key: str) -> None:
        """Clear a job of suspicion."""
        self._suspects.pop(key, None)

    def convict(self, key: str) -> None:
        """Find a suspect guilty: its worker died alone, on a machine that lives; another job than a suspect is not."""
        suspect = self._suspects.pop(key, None)
        if suspect is None:
            return
        self.count_loss(key)
        faults = self._faults[suspect.node]
        faults.append(key)
        if len(faults) >= NODE_FAULTS and len(set(faults)) > 1:
            self.left_out[suspect.node] = f"{len(faults)} workers died there, at different jobs"

    def convict_all(self, worker: str) -> None:
        """Find all suspects of ``worker`` guilty."""
        for key in [key for key, suspect in self._suspects.items() if suspect.worker == worker]:
            self.convict(key)

    def count_loss(self, key: str) -> None:
        """Note that a job killed its worker; too many such deaths end the run."""
        self.given_up = self.given_up or self.queue.count_loss(key)

    def finished(self, node: str) -> None:
        """Note that a job was finished on ``node``: the machine works."""
        self._faults.pop(node, None)

    def ready(self, worker: str) -> None:
        """Note that ``worker`` came to ask for a job."""
        self._early.pop(worker, None)

    def died_early(self, worker: str, node: str, others_at_work: bool) -> None:
        """Count a process that died before it was ready: three in a row end the run, or cost the machine its place."""
        self._early[worker] += 1
        if self._early[worker] < MAX_LOSSES:
            return
        if others_at_work:
            self.left_out[node] = f"{self._early[worker]} workers died there before they were ready"
        else:
            self.given_up = self.given_up or f"workers die before they are ready ({self._early[worker]} in a row)"
