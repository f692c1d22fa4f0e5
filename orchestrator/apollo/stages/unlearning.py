"""Stage unlearn: one model without its forget set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from audits.seeds import Purpose
from orchestrator.apollo.stages.context import Context
from orchestrator.apollo.stages.stored import builder_of, stored_model
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.worker import WEIGHTS
from orchestrator.engine.store.payloads import pack_weights

if TYPE_CHECKING:
    from orchestrator.apollo.plan import UnlearningMethod


def unlearn(context: Context, job: Job) -> dict[str, bytes]:
    """Make one model forget its forget set."""
    member, entry = context.design.member(job.member), context.design.by_label[job.label]
    model = stored_model(context, context.design.trained(member), member)
    changed = entry.unlearner().unlearn(
        model,
        context.tensors(member.forget),
        context.tensors(member.retain),
        seed=context.seed(Purpose.UNLEARN, name_in_seeds(entry, context.design.plan.unlearning), member.name),
        recipe=context.design.recipe_of(member),
        build=builder_of(context, member),
        keeper=context.keeper,
        team=context.team,
    )
    return {WEIGHTS: pack_weights(changed)}


def name_in_seeds(entry: UnlearningMethod, methods: Sequence[UnlearningMethod]) -> str:
    """Return the name by which ``entry`` draws at random: its method's, whatever ``as`` calls it.

    A mere rename so draws nothing anew. Where a plan has the same method with the same settings several times, the
    others are repetitions, which draw by the names that they were given.
    """
    same = [each for each in methods if (each.method, each.settings) == (entry.method, entry.settings)]
    first = next((each for each in same if each.given_label is None), same[0])
    return type(entry)(method=entry.method).label if entry == first else entry.label
