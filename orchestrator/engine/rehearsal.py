"""A plan's rehearsal: the audit once more, on points that it does not ask about (``orch tune``).

A kind lays its rehearsals out by a kind of their own, with the stages of the audit: a worker is given the plan that is
rehearsed and makes the same design of it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from audits.data.classes import points_of
from audits.data.left_over import draw_left_over
from orchestrator.engine.keyed_jobs import KeyedJobs

if TYPE_CHECKING:
    from audits.data.dataset import Dataset
    from audits.data.pools import Pools
    from orchestrator.engine.kind import Stage
    from orchestrator.engine.store.store import Store


class RehearsedJobs(KeyedJobs):
    """Makes the jobs of the rehearsal of ``plan``; the design's own ``plan`` is then that of the rehearsal."""

    def __init__(
        self, plan: Any, data: Dataset, device: str, store: Store | None = None, stages: Sequence[Stage] = ()
    ) -> None:
        super().__init__(self.within(plan), data, device, store, stages)
        self.audit = self.laid_out(plan, data, device, store, stages)

    @staticmethod
    @abstractmethod
    def within(plan: Any) -> Any:
        """Return the plan of the audit that is the rehearsal of ``plan``."""

    @staticmethod
    @abstractmethod
    def laid_out(*plan_and_place: Any) -> Any:
        """Return the design of the audit that is rehearsed, from what a design is made of."""

    @cached_property
    def plan_hash(self) -> str:
        """The hash of the plan that is rehearsed, by which workers know it."""
        return str(self.audit.plan_hash)


class RehearsedPools(RehearsedJobs):
    """Makes the jobs of a rehearsal whose pools are drawn from the points that those of the audit leave over."""

    classes: tuple[int, ...]

    @cached_property
    def drawn(self) -> Pools:
        """The points of the pools, and the test points; raises BadInput when too few are left."""
        split, ids = self.plan.split, points_of(self.data.labels, self.classes)
        return draw_left_over(
            ids, self.audit.drawn, split.pools, split.train_size, split.test, self.plan.seed, self.data.groups
        )
