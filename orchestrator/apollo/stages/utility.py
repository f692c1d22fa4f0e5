"""Stage utility: how much accuracy an unlearned target has kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from audits.training.loop import accuracy
from orchestrator.apollo.stages.context import Context
from orchestrator.apollo.stages.stored import stored_model
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.models import METRICS
from orchestrator.engine.store.payloads import pack_json

if TYPE_CHECKING:
    from torch import nn


def utility(context: Context, job: Job) -> dict[str, bytes]:
    """Measure one unlearned target: accuracies, distance from the original model, seconds it took.

    What takes an original is left out of a given model without one, the distance of one that shows no weights, and the
    seconds of all of them, which nobody counted.
    """
    member, entry = context.design.member(job.member), context.design.by_label[job.label]
    before, after = context.design.before(member, entry), context.design.unlearned(member, entry)
    model = stored_model(context, after, member)
    test = context.tensors(context.design.partition.test)
    found = {
        "retain_accuracy": accuracy(model, context.tensors(member.retain)),
        "forget_accuracy": accuracy(model, context.tensors(member.forget)),
        "test_accuracy": accuracy(model, test),
    }
    if before is not None:
        original = stored_model(context, before, member)
        found["test_accuracy_before"] = accuracy(original, test)
        if all(list(each.parameters()) for each in (model, original)):
            found |= {"distance": distance(model, original), "norm": distance(original, None)}
    if not context.design.is_given(member, entry):
        found["seconds"] = 0.0 if before == after else context.store.get(after.stage, after.key).seconds
    return {METRICS: pack_json(found)}


def distance(model: nn.Module, original: nn.Module | None) -> float:
    """Return ‖θ_u − θ‖₂ over all parameters in float64; without ``original`` the norm ‖θ_u‖₂."""
    import torch

    own = [weight.double() for weight in model.parameters()]
    if original is not None:
        own = [after - before for after, before in zip(own, original.parameters(), strict=True)]
    return float(torch.stack([part.norm() for part in own]).norm())
