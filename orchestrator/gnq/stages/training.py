"""Stage train: one model of a pool, seen at checkpoints while it trains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from audits.gnq.held_out import held_out_losses
from audits.training.fit import fit
from audits.training.keeper import Phases
from audits.uniqueness.accumulate import fit_kept, fit_traced
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.models import divergence_named
from orchestrator.engine.store.payloads import pack_arrays
from orchestrator.gnq.stages.context import Context
from orchestrator.gnq.stages.finished import finished, seed_of, untrained
from orchestrator.gnq.stages.stored import HELD_OUT, TRACE, packed, tensors

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from audits.data.tensors import TensorSet
    from orchestrator.gnq.design import Watched


CHECKPOINT = "checkpoint-{}.safetensors"
"""Weights after so many steps: a file each, since a look reads one of them."""


def train(context: Context, job: Job) -> dict[str, bytes]:
    """Train one model, see its points at checkpoints or keep its weights there, and ask it about its pool."""
    design = context.design
    model, audit, recipe = design.models[job.member], design.plan.audit, design.plan.recipe
    points = tensors(context, design.points(model))
    found = untrained(context, model.seed)
    with divergence_named(model.name):
        if not design.seen(model):
            fit(found, points, recipe, seed=seed_of(model.seed), keeper=context.keeper, team=context.team)
            return finished(context, model, found, points, recipe)
        keepers = Phases(context.keeper)
        keeper = keepers.of("own")
        if design.apart:
            kept = fit_kept(
                found, points, recipe,
                seed=seed_of(model.seed), every=design.every, keeper=keeper, team=context.team,
            )  # fmt: skip
            weights = {CHECKPOINT.format(step): pack_state(state) for step, state in kept.items()}
            others = held_out(context, model, points, keepers)
            return {**finished(context, model, found, points, recipe), **weights, **others}
        trace = fit_traced(
            found, points, recipe, seed=seed_of(model.seed), every=design.every, modes=design.modes(model),
            ridge=audit.ridge, in_batch=design.in_batch(model), chunk=design.plan.compute.chunk,
            keeper=keeper, team=context.team,
        )  # fmt: skip
    doubts = sum(bool(text) for text in trace.doubts) + (trace.in_batch.doubts if trace.in_batch else 0)
    seen = {TRACE: pack_arrays(packed(trace)), **held_out(context, model, points, keepers)}
    return {**finished(context, model, found, points, recipe, doubts=doubts), **seen}


def held_out(context: Context, model: Watched, points: TensorSet, keepers: Phases) -> dict[str, bytes]:
    """Return the loss of a model's points under further models without them, if the plan asks for these."""
    design = context.design
    count = design.held_out(model)
    if not count:
        return {}
    found = held_out_losses(design.build, points, design.plan.recipe, count, model.seed, keepers, context.team)
    return {HELD_OUT: pack_arrays({"loss": found})}


def pack_state(state: Mapping[str, torch.Tensor]) -> bytes:
    """Return the weights of a checkpoint as a safetensors file."""
    from safetensors.torch import save

    return bytes(save(dict(state)))
