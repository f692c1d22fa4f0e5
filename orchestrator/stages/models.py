"""Stages that make and measure models: train, unlearn, utility."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from audits.errors import BadInput
from orchestrator.jobs import Job
from orchestrator.stages.workshop import WEIGHTS, Workshop
from orchestrator.store import pack_json

if TYPE_CHECKING:
    from torch import nn

    from audits.training.recipe import Recipe

METRICS = "metrics.json"


def train(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Train one model and say how well it fits."""
    from audits.training.loop import accuracy, train_model

    member = shop.scheduler.member(job.member)
    points = shop.tensors(member.train)
    try:
        model = train_model(
            shop.builder(member), points, shop.scheduler.recipe_of(member), shop.seed("train", member.name)
        )
    except FloatingPointError as error:
        raise BadInput(f"recipe: {member.name}: {error}") from None
    found = {"train_accuracy": accuracy(model, points), **privacy(shop.scheduler.recipe_of(member), len(points))}
    return {WEIGHTS: pack_weights(model), METRICS: pack_json(found)}


def privacy(recipe: Recipe, points: int) -> dict[str, float]:
    """Return the (ε, δ) that DP-SGD has spent; nothing for a recipe that promises nothing."""
    if not recipe.private:
        return {}
    from audits.training.private import delta_of, spent_epsilon

    spent = spent_epsilon(recipe, points)
    return {"epsilon": spent, "delta": delta_of(recipe, points)} if math.isfinite(spent) else {}


def unlearn(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Make one model forget its forget set."""
    member = shop.scheduler.member(job.member)
    model = shop.model(shop.scheduler.trained(member), member)
    changed = (
        shop.methods[job.label]
        .unlearner()
        .unlearn(
            model,
            shop.tensors(member.forget),
            shop.tensors(member.retain),
            seed=shop.seed("unlearn", job.label, member.name),
            recipe=shop.scheduler.recipe_of(member),
            build=shop.builder(member),
        )
    )
    return {WEIGHTS: pack_weights(changed)}


def utility(shop: Workshop, job: Job) -> dict[str, bytes]:
    """Measure one unlearned target: accuracies, distance from the original model, seconds it took."""
    from audits.training.loop import accuracy

    member, entry = shop.scheduler.member(job.member), shop.methods[job.label]
    before, after = shop.scheduler.trained(member), shop.scheduler.unlearned(member, entry)
    model, original = shop.model(after, member), shop.model(before, member)
    test = shop.tensors(shop.scheduler.partition.test)
    found = {
        "retain_accuracy": accuracy(model, shop.tensors(member.retain)),
        "forget_accuracy": accuracy(model, shop.tensors(member.forget)),
        "test_accuracy": accuracy(model, test),
        "test_accuracy_before": accuracy(original, test),
        "distance": distance(model, original),
        "norm": distance(original, None),
        "seconds": 0.0 if before == after else shop.store.get(after.stage, after.key).seconds,
    }
    return {METRICS: pack_json(found)}


def pack_weights(model: nn.Module) -> bytes:
    """Return a model's parameters and buffers as safetensors."""
    from safetensors.torch import save

    state = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    return bytes(save(state))


def distance(model: nn.Module, original: nn.Module | None) -> float:
    """Return ‖θ_u − θ‖₂ over all parameters in float64; without ``original`` the norm ‖θ_u‖₂."""
    import torch

    own = [weight.double() for weight in model.parameters()]
    if original is not None:
        own = [after - before for after, before in zip(own, original.parameters(), strict=True)]
    return float(torch.stack([part.norm() for part in own]).norm())
