"""The rehearsal of a TMIA audit: the audit once more, of pseudo-targets that are made of the attacker's points."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from audits.seeds import derive_seed
from audits.tmia.rehearsal import rehearsal_split
from orchestrator.engine.rehearsal import RehearsedJobs
from orchestrator.tmia.jobs import TmiaJobs
from orchestrator.tmia.kind import KIND
from orchestrator.tmia.plan import TmiaPlan, sizes
from orchestrator.tmia.selection import points_read

if TYPE_CHECKING:
    from audits.arrays import Ids
    from orchestrator.tmia.design import Side

CUT = ("attacker_points", "filler", "null_models", "overfitted_models")
"""The sizes that are not those of the audit."""


def within(plan: TmiaPlan) -> TmiaPlan:
    """Return the plan of the audit that is the rehearsal of ``plan``; raises BadInput where points do not suffice."""
    split = rehearsal_split(sizes(plan), points_read(plan))
    cut = {f"split.{name}": getattr(split, name) for name in CUT}
    return plan.changed({**cut, "seed": derive_seed(plan.seed, "rehearsal")})


class RehearsedTmia(RehearsedJobs, TmiaJobs):
    """Lays out the rehearsal of a plan."""

    within, laid_out = staticmethod(within), TmiaJobs

    def points(self, side: Side) -> Ids:
        """Return the ids of a side's points: of the candidates' side those of the attacker.

        Neither candidates nor filler of the audit, nor others of their groups, take part on either side.
        """
        import numpy as np

        sets = self.audit.sets
        if side == "own":
            return np.sort(sets.attacker_points)
        points = super().points(side)
        if self.data.contents != self.other.contents:
            return points
        return points[~np.isin(points, self.with_groups(np.concatenate([sets.candidates, sets.filler])))]


def probe(plan: TmiaPlan, *others: Any) -> Any:
    """Return what guesses the seconds of the jobs of the rehearsal of ``plan``."""
    return KIND.probe(within(plan), *others)


PLACE = "orchestrator.tmia.rehearsal:REHEARSAL"
REHEARSAL = replace(KIND, place=PLACE, design=RehearsedTmia, probe=probe, selection=None)
