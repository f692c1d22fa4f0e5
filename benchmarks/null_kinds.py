"""The audits under the null hypothesis: the members that an audit asks about were exchanged before training.

Everything else is the audit itself. A worker process finds these kinds by their place, so that the code may run on Ray.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from audits.tmia.design import rows
from orchestrator.apollo.jobs import ApolloJobs
from orchestrator.apollo.kind import KIND as APOLLO_KIND
from orchestrator.gnq.jobs import GnqJobs
from orchestrator.gnq.kind import KIND as GNQ_KIND
from orchestrator.mia.jobs import MiaJobs
from orchestrator.mia.kind import KIND as MIA_KIND
from orchestrator.tmia.jobs import TmiaJobs
from orchestrator.tmia.kind import KIND as TMIA_KIND

if TYPE_CHECKING:
    from audits.apollo.design.partition import Member
    from audits.arrays import Ids
    from audits.tmia.design import MembershipDesign
    from orchestrator.apollo.plan import UnlearningMethod
    from orchestrator.engine.jobs.job import Job, Reference
    from orchestrator.gnq.design import Watched
    from orchestrator.mia.design import Fitted, Group


class ExchangedApollo(ApolloJobs):
    """Each target is trained on, and unlearns, the points of the next one; asked about are its own.

    Targets share no point, so none of the asked ones was ever trained on. ``identity`` keeps its members: without this
    positive control a gate is inconclusive. Utility says what the exchanged model does on the points of the other.
    """

    def unlearned(self, member: Member, entry: UnlearningMethod) -> Reference:
        """Return where the unlearned model stands; targets but those of ``identity`` are exchanged for the next."""
        if member.role != "target" or entry.method == "identity":
            return super().unlearned(member, entry)
        targets = self.targets
        return super().unlearned(targets[(targets.index(member) + 1) % len(targets)], entry)


class ExchangedTmia(TmiaJobs):
    """Targets train on filler alone, like null models; the audit still takes their former members for members."""

    @cached_property
    def sets(self) -> MembershipDesign:
        """Who trains on which candidates: no target does."""
        found = super().sets
        count, size = found.target.shape
        drawn = rows(found.filler, count, size, self.plan.seed, "benchmarks/null", replace=False)
        return replace(found, target=drawn)


class ExchangedGnq(GnqJobs):
    """Targets train on the points in the same places of another pool, before and behind every defence."""

    def source(self, model: Watched) -> Ids:
        """Return the ids among which a model's half is drawn: for targets those of the pool after the next.

        The next pool's targets are the null models of this one and stay so.
        """
        pools = self.drawn.pools
        found: Ids = pools[(model.pool + 2) % len(pools)] if model.group == "target" else pools[model.pool]
        return found


class ExchangedMia(MiaJobs):
    """Targets train on the points in the same places of the pool after the next, and so do those that are null models.

    With four pools only those of the next pool may be null models (``split.null_models: 2``): the others train here.
    """

    @cached_property
    def models(self) -> dict[str, Fitted]:
        """All models by name; ``pool`` is the one whose points they train on."""
        pools = self.plan.split.pools
        return {
            name: replace(model, pool=(model.pool + 2) % pools) if model.group == "target" else model
            for name, model in super().models.items()
        }

    def of(self, pool: int, group: Group) -> list[Fitted]:
        """Return the models of a group that are asked about a pool, and pass for ones that trained on halves of it."""
        if group != "target":
            return super().of(pool, group)
        return [replace(self.models[f"{pool}-target-{index}"], pool=pool) for index in range(2)]

    def train_job(self, model: Fitted) -> Job:
        """Return the job that trains a model on what it is exchanged for."""
        return super().train_job(self.models[model.name])


APOLLO = replace(APOLLO_KIND, place=f"{__name__}:APOLLO", design=ExchangedApollo)
TMIA = replace(TMIA_KIND, place=f"{__name__}:TMIA", design=ExchangedTmia)
GNQ = replace(GNQ_KIND, place=f"{__name__}:GNQ", design=ExchangedGnq)
MIA = replace(MIA_KIND, place=f"{__name__}:MIA", design=ExchangedMia)
