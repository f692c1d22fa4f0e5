"""Workers' contexts that know what the user has said of stores, wherever the workers are."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from orchestrator.engine.run.recent import Recent
from orchestrator.engine.run.worker import OpenContexts, WorkerContext
from orchestrator.engine.store.trust import Trust, holding


@dataclass(frozen=True)
class TrustedContexts(OpenContexts):
    """Opens contexts as ``OpenContexts`` does; ``trust``: what the driver's user has said of stores.

    It stands here, because the code of ``OpenContexts`` counts in the keys of all that workers make.
    """

    trust: Trust = field(default_factory=Trust.of, repr=False, compare=False)

    def open(self, plan_hash: str, lately: Recent | None = None) -> WorkerContext[Any]:
        """Return the context of one plan, whose store is opened as the driver's user would."""
        with holding(self.trust):
            return super().open(plan_hash, lately)
