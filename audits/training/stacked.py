"""Train small models of one form at once: their weights side by side, one step for all of them.

A step of a small model leaves a GPU waiting for launches; here S models take a step with about as many launches as one
does alone. On a CPU training one after the other is faster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call, stack_module_state, vmap

from audits.data.tensors import TensorSet, as_float
from audits.errors import BadInput
from audits.memory import give_back, out_of_memory
from audits.models.finite import check_finite
from audits.models.stacked import form
from audits.seeds import Purpose, derive_seed, torch_generator
from audits.training.loop import batches, drawn_shifts, make_schedule, optimizer_over, shifted, train_mode
from audits.training.recipe import Recipe

State = dict[str, torch.Tensor]


def fit_stacked(
    models: Sequence[nn.Module], sets: Sequence[TensorSet], recipe: Recipe, *, seeds: Sequence[int]
) -> list[nn.Module]:
    """Train each of S ``models`` in place on its own set by ``recipe`` and return them in eval mode.

    Each is the model of ``fit`` with its set and its seed, up to rounding: order and augmentation are those of its
    seed. All models are of one form, all sets of one size and on the models' device. Memory: the sets once more, and
    weights, gradients and activations of all models at once; where it does not suffice, each half of the models is
    trained in its turn, from the start, down to one model. Raises ``BadInput`` for models or sets that differ, for
    recipes that are private or users' own, and for dropout, whose draws cannot be those of ``fit``;
    ``FloatingPointError`` when a loss or a weight is not finite.
    """
    check(models, sets, recipe, seeds)
    try:
        return fit_at_once(models, sets, recipe, seeds)
    except Exception as error:
        if len(models) == 1 or not out_of_memory(error):
            raise
    give_back()
    half = len(models) // 2
    first = fit_stacked(models[:half], sets[:half], recipe, seeds=seeds[:half])
    return first + fit_stacked(models[half:], sets[half:], recipe, seeds=seeds[half:])


def fit_at_once(
    models: Sequence[nn.Module], sets: Sequence[TensorSet], recipe: Recipe, seeds: Sequence[int]
) -> list[nn.Module]:
    """Train all models at once; until the last step is taken they stay as they are."""
    for model in models:
        train_mode(model)
    parameters, buffers = stack_module_state(list(models))
    x, y = torch.stack([data.x for data in sets]), torch.stack([data.y for data in sets])
    optimizer = optimizer_over(list(parameters.values()), recipe)
    schedule = make_schedule(optimizer, recipe.schedule, recipe.epochs)
    orders = [torch_generator(derive_seed(seed, Purpose.ORDER)) for seed in seeds]
    noises = [torch_generator(derive_seed(seed, Purpose.AUGMENT)) for seed in seeds]
    which, points = torch.arange(len(models), device=y.device)[:, None], y.shape[1]
    for epoch in range(recipe.epochs):
        drawn = [batches(points, recipe.batch_size, order) for order in orders]
        sizes = [len(part) for part in drawn[0]]
        together = torch.stack([torch.cat(parts) for parts in drawn]).to(y.device)
        total = torch.zeros(len(models), device=y.device)
        for rows in together.split(sizes, dim=1):
            images = as_float(x[which, rows])
            if recipe.augment_shift or recipe.flip:
                images = augmented_each(images, recipe, noises)
            losses = step_each(models[0], parameters, buffers, optimizer, images, y[which, rows], recipe)
            total += losses * rows.shape[1]
        schedule.step()
        for place, loss in enumerate((total / points).tolist()):
            if not math.isfinite(loss):
                raise FloatingPointError(
                    f"training of model {place} diverged in epoch {epoch + 1} of {recipe.epochs}: the loss is {loss}; "
                    "lower the learning rate"
                )
    return [unstacked(model, {**parameters, **buffers}, place) for place, model in enumerate(models)]


def check(models: Sequence[nn.Module], sets: Sequence[TensorSet], recipe: Recipe, seeds: Sequence[int]) -> None:
    """Refuse what cannot be trained at once, or would not be trained as ``fit`` trains it."""
    if not models or not len(models) == len(sets) == len(seeds):
        raise BadInput(f"{len(models)} models, {len(sets)} sets and {len(seeds)} seeds; give as many of each")
    if recipe.private or recipe.fit is not None:
        raise BadInput("recipe is private or a user's own, which trains one model at a time; use fit")
    sizes = {(len(data), *data.x.shape[1:]) for data in sets}
    if len(sizes) > 1 or not len(sets[0]):
        raise BadInput(f"the sets have shapes {', '.join(map(str, sorted(sizes)))}; give sets of one size, not empty")
    if any(form(model) != form(models[0]) for model in models[1:]):
        raise BadInput("the models differ in more than their weights; give models of one architecture")
    if any(not weight.requires_grad for model in models for weight in model.parameters()):
        raise BadInput("a weight of a model is frozen; train such models one by one, with fit")
    rates = [getattr(module, "p", 0.0) for module in models[0].modules() if "Dropout" in type(module).__name__]
    if any(rates):
        raise BadInput("the models drop at random, which each would draw otherwise than alone; use fit")


def step_each(
    model: nn.Module,
    parameters: State,
    buffers: State,
    optimizer: torch.optim.Optimizer,
    x: torch.Tensor,
    y: torch.Tensor,
    recipe: Recipe,
) -> torch.Tensor:
    """Take one step of each model on its batch ``x`` (S, B, ...), ``y`` (S, B); return the mean losses (S,)."""

    def forward(weights: State, state: State, images: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = functional_call(model, (weights, state), (images,))
        return found

    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(x.device.type, torch.bfloat16, enabled=recipe.dtype == "bfloat16"):
        output = vmap(forward)(parameters, buffers, x)
        each = F.cross_entropy(
            output.flatten(0, 1), y.flatten(), label_smoothing=recipe.label_smoothing, reduction="none"
        )
        losses = each.reshape(y.shape).mean(1)
    losses.sum().backward()
    if recipe.clip_norm is not None:
        clip_each(list(parameters.values()), recipe.clip_norm)
    optimizer.step()
    return losses.detach()


def clip_each(parameters: Sequence[torch.Tensor], most: float) -> None:
    """Scale each model's gradient (S, ...) to a norm of at most ``most``, as ``clip_grad_norm_`` does for one."""
    gradients = [weight.grad for weight in parameters if weight.grad is not None]
    norms = torch.stack([torch.linalg.vector_norm(gradient.flatten(1), dim=1) for gradient in gradients])
    scale = (most / (torch.linalg.vector_norm(norms, dim=0) + 1e-6)).clamp_max(1.0)
    for gradient in gradients:
        gradient.mul_(scale.reshape(-1, *[1] * (gradient.ndim - 1)))


def augmented_each(x: torch.Tensor, recipe: Recipe, noises: Sequence[torch.Generator]) -> torch.Tensor:
    """Return the images (S, B, C, H, W), each model's shifted and mirrored by its own draws."""
    drawn = [drawn_shifts(x.shape[1], recipe.augment_shift, recipe.flip, noise) for noise in noises]
    return shifted(x.flatten(0, 1), recipe.augment_shift, recipe.flip, torch.cat(drawn)).reshape(x.shape)


def unstacked(model: nn.Module, state: State, place: int) -> nn.Module:
    """Put the weights of model ``place`` into ``model`` and return it in eval mode."""
    with torch.no_grad():
        own = model.state_dict()
        for name, value in state.items():
            if name in own:
                own[name].copy_(value[place])
    model.zero_grad(set_to_none=True)
    check_finite(model)
    return model.eval()
