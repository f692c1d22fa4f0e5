"""Stage disclosure: how unique the gradients of a target's points were while it trained.

An auditor's look at each target's training, taken before anything is unlearned. No attack reads it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from audits.errors import BadInput
from audits.uniqueness.bits import bits_upper
from audits.uniqueness.rankings import RANKINGS
from orchestrator.apollo.stages.context import Context
from orchestrator.apollo.stages.stored import stored_model
from orchestrator.apollo.stages.watching import watch
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.store.payloads import pack_arrays

if TYPE_CHECKING:
    from torch import nn

    from audits.apollo.design.partition import Member

DISCLOSURE = "disclosure.safetensors"
SCORES = ("gnq_log", "loss_log", "gradient_norm_log", "final_loss", "gradient_norm")


def disclosure(context: Context, job: Job) -> dict[str, bytes]:
    """Train a target again, to the same bits, and say how unique the gradients of its n training points were.

    ``point_id`` (n,) int64; (n,) float64: ``bits`` (``bits_upper``) and the rankings ``SCORES``, of which the first is
    made of uniqueness and the others are its controls (``audits.uniqueness.rankings``).
    """
    member = context.design.member(job.member)
    model, trace = watch(context, member, context.keeper)
    check_same(context, member, model)
    scores = {name: RANKINGS[name](trace, 0) for name in SCORES}
    bits = bits_upper(trace.gnq["ridge"], trace.weights)
    return {DISCLOSURE: pack_arrays({"point_id": member.train, "bits": bits, **scores})}


def check_same(context: Context, member: Member, model: nn.Module) -> None:
    """Refuse a second training whose weights are not those of the stored model, of which it would say nothing."""
    import torch

    stored = stored_model(context, context.design.trained(member), member).state_dict()
    for name, value in model.state_dict().items():
        if not torch.equal(value, stored[name]):
            raise BadInput(
                f"audit.disclosure: {member.name} trained again differs from the stored model in {name}, so training "
                f"cannot be repeated on {context.design.device}; set compute.device to cpu or audit.disclosure to false"
            )
