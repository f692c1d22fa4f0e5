"""The rehearsal of a TMIA audit: the audit once more, of pseudo-targets made of the attacker's points (``orch tune``).

A kind of its own with the stages of the audit, so that a worker who is given the plan lays out the rehearsal of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from audits.seeds import derive_seed
from audits.tmia.rehearsal import rehearsal_split
from orchestrator.tmia.cost import TmiaProbe
from orchestrator.tmia.jobs import TmiaJobs
from orchestrator.tmia.kind import KIND
from orchestrator.tmia.plan import TmiaPlan, sizes

if TYPE_CHECKING:
    from audits.arrays import Ids
    from audits.data.dataset import Dataset
    from orchestrator.engine.kind import Stage
    from orchestrator.engine.store.store import Store
    from orchestrator.engine.timings import Timings
    from orchestrator.tmia.design import Side


def read_points(plan: TmiaPlan) -> int:
    """Return how many of the attacker's points selectors and attacks read."""
    return plan.audit.reference_samples + plan.audit.reconstruction.points


def within(plan: TmiaPlan) -> TmiaPlan:
    """Return the plan of the audit that is the rehearsal of ``plan``; raises BadInput where points do not suffice."""
    split = rehearsal_split(sizes(plan), read_points(plan))
    fields = ("attacker_points", "filler", "null_models")
    changes = {f"split.{name}": getattr(split, name) for name in fields}
    return plan.changed({**changes, "seed": derive_seed(plan.seed, "rehearsal")})


class RehearsedTmia(TmiaJobs):
    """Lays out the rehearsal of ``plan``; ``plan`` and all else of the design are then those of the rehearsal."""

    def __init__(
        self, plan: TmiaPlan, data: Dataset, device: str, store: Store | None = None, stages: Sequence[Stage] = ()
    ) -> None:
        super().__init__(within(plan), data, device, store, stages)
        self.audit = TmiaJobs(plan, data, device, store, stages)

    @cached_property
    def plan_hash(self) -> str:
        """The hash of the plan that is rehearsed, by which workers know it."""
        return self.audit.plan_hash

    def points(self, side: Side) -> Ids:
        """Return the ids of a side's points: of the candidates' the attacker's; of the other none of targets'.

        Neither candidates nor filler of the audit, nor their groups, take part on either side.
        """
        import numpy as np

        sets = self.audit.sets
        if side == "own":
            return np.sort(sets.attacker_points)
        points = super().points(side)
        if self.data.contents != self.other.contents:
            return points
        return points[~np.isin(points, self.with_groups(np.concatenate([sets.candidates, sets.filler])))]


def probe(plan: TmiaPlan, device: str, timings: Timings) -> Any:
    """Return what guesses the seconds of the jobs of the rehearsal of ``plan``."""
    return TmiaProbe(within(plan), device, timings)


REHEARSAL = replace(
    KIND, place="orchestrator.tmia.rehearsal:REHEARSAL", design=RehearsedTmia, probe=probe, selection=None
)
