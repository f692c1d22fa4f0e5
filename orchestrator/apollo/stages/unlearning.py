"""Stage unlearn: one model without its forget set."""

from __future__ import annotations

from audits.seeds import Purpose
from orchestrator.apollo.stages.context import Context
from orchestrator.apollo.stages.stored import builder_of, stored_model
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.worker import WEIGHTS
from orchestrator.engine.store.payloads import pack_weights


def unlearn(context: Context, job: Job) -> dict[str, bytes]:
    """Make one model forget its forget set."""
    member, entry = context.design.member(job.member), context.design.by_label[job.label]
    model = stored_model(context, context.design.trained(member), member)
    changed = entry.unlearner().unlearn(
        model,
        context.tensors(member.forget),
        context.tensors(member.retain),
        seed=context.seed(Purpose.UNLEARN, context.design.names_in_seeds[job.label], member.name),
        recipe=context.design.recipe_of(member),
        build=builder_of(context, member),
        keeper=context.keeper,
        team=context.team,
    )
    return {WEIGHTS: pack_weights(changed)}
