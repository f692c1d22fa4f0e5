"""The one training loop: target, shadow, retrained, contrast and student models all go through it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from audits.data.tensors import TensorSet, as_float
from audits.errors import BadInput
from audits.seeds import derive_seed, torch_generator
from audits.training.recipe import Recipe


@dataclass(frozen=True)
class EpochReport:
    """What an observer of the loop gets after each epoch: index from 0, mean loss, points seen."""

    epoch: int
    loss: float
    points: int


Observer = Callable[[EpochReport], None]


def fit(
    model: nn.Module, data: TensorSet, recipe: Recipe, *, seed: int, observers: tuple[Observer, ...] = ()
) -> nn.Module:
    """Train ``model`` in place on ``data`` by ``recipe`` and return it in eval mode.

    The order of the points and the augmentation depend on ``seed`` only (drawn on the CPU). A batch of a single
    point is joined to the one before it, so that BatchNorm always has statistics. Raises ``BadInput`` on empty data
    and ``FloatingPointError`` when the loss is not finite. A private recipe is trained by ``private.fit_private``.
    """
    if len(data) == 0:
        raise BadInput("training set is empty; give at least one point")
    if recipe.private:
        from audits.training.private import fit_private

        return fit_private(model, data, recipe, seed=seed, observers=observers)
    train_mode(model)
    optimizer = make_optimizer(model, recipe)
    schedule = make_schedule(optimizer, recipe.schedule, recipe.epochs)
    order = torch_generator(derive_seed(seed, "order"))
    noise = torch_generator(derive_seed(seed, "augment"))
    with torch.random.fork_rng(devices=devices_of(data)):
        torch.manual_seed(derive_seed(seed, "dropout"))
        for epoch in range(recipe.epochs):
            total = torch.zeros((), device=data.y.device)
            for rows in batches(len(data), recipe.batch_size, order):
                x, y = data.batch(rows.to(data.y.device))
                if recipe.augment_shift or recipe.flip:
                    x = augmented(x, recipe.augment_shift, recipe.flip, noise)
                total += step(model, optimizer, x, y, recipe) * len(y)
            schedule.step()
            loss = float(total) / len(data)
            if not math.isfinite(loss):
                raise FloatingPointError(
                    f"training diverged in epoch {epoch + 1} of {recipe.epochs}: the loss is {loss}; "
                    "lower the learning rate"
                )
            for observer in observers:
                observer(EpochReport(epoch, loss, len(data)))
    check_finite(model)
    return model.eval()


def train_mode(model: nn.Module) -> None:
    """Put ``model`` in train mode, except BatchNorm whose weights are frozen: it keeps and uses its running statistics.

    So a frozen layer computes the same function before, during and after training (``transfer``).
    """
    model.train()
    for module in model.modules():
        weights = list(module.parameters(recurse=False)) if isinstance(module, _BatchNorm) else []
        if weights and not any(weight.requires_grad for weight in weights):
            module.eval()


def check_finite(model: nn.Module) -> None:
    """Raise ``FloatingPointError`` when a weight or a statistic of ``model`` is not finite."""
    for name, value in model.state_dict().items():
        if not bool(torch.isfinite(value).all()):
            raise FloatingPointError(f"training diverged: {name} is not finite; lower the learning rate")


def train_model(build: Callable[[int], nn.Module], data: TensorSet, recipe: Recipe, seed: int) -> nn.Module:
    """Return a new model trained on ``data``: how targets, shadows and retrained models are all made.

    ``build`` returns a freshly initialised module for a seed. The model stands on the device of ``data``.
    """
    model = build(derive_seed(seed, "init")).to(data.y.device)
    return fit(model, data, recipe, seed=derive_seed(seed, "fit"))


def step(
    model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor, recipe: Recipe
) -> torch.Tensor:
    """Take one optimiser step on a batch and return its mean loss (detached)."""
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(x.device.type, torch.bfloat16, enabled=recipe.dtype == "bfloat16"):
        loss = F.cross_entropy(model(x), y, label_smoothing=recipe.label_smoothing)
    loss.backward()
    if recipe.clip_norm is not None:
        nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
    optimizer.step()
    return loss.detach()


def batches(points: int, size: int, generator: torch.Generator) -> list[torch.Tensor]:
    """Return one epoch's index tensors in a fresh random order; a last batch of one point joins its neighbour."""
    parts = list(torch.randperm(points, generator=generator).split(size))
    if len(parts) > 1 and len(parts[-1]) == 1:
        last = parts.pop()
        parts[-1] = torch.cat([parts[-1], last])
    return parts


def make_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Return the recipe's optimiser over the parameters that need gradients."""
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    rate, decay = recipe.learning_rate, recipe.weight_decay
    match recipe.optimizer:
        case "adamw":
            return torch.optim.AdamW(parameters, lr=rate, weight_decay=decay, fused=True)
        case "adam":
            return torch.optim.Adam(parameters, lr=rate, weight_decay=decay, fused=True)
        case "sgd":
            return torch.optim.SGD(parameters, lr=rate, weight_decay=decay, momentum=recipe.momentum)


def make_schedule(optimizer: torch.optim.Optimizer, name: str, epochs: int) -> torch.optim.lr_scheduler.LRScheduler:
    """Return the per-epoch schedule ``constant`` or ``cosine`` (to zero over ``epochs``)."""
    if name == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(1, epochs))
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)


def augmented(x: torch.Tensor, shift: int, flip: bool, generator: torch.Generator) -> torch.Tensor:
    """Return images (N, C, H, W) shifted by up to ``shift`` pixels with zero padding and, on request, mirrored."""
    count = len(x)
    if flip:
        mirrored = torch.rand(count, generator=generator) < 0.5
        x = torch.where(mirrored.to(x.device)[:, None, None, None], x.flip(-1), x)
    if shift:
        offsets = torch.randint(0, 2 * shift + 1, (count, 2), generator=generator)
        height, width = x.shape[-2:]
        padded = F.pad(x, [shift] * 4)
        windows = [
            padded[i, :, top : top + height, left : left + width] for i, (top, left) in enumerate(offsets.tolist())
        ]
        x = torch.stack(windows)
    return x


def devices_of(data: TensorSet) -> list[torch.device]:
    """Return the CUDA devices whose generator a run on ``data`` would touch."""
    return [data.y.device] if data.y.device.type == "cuda" else []


@torch.no_grad()
def logits(model: nn.Module, x: torch.Tensor, chunk: int = 1024) -> torch.Tensor:
    """Return ``model``'s logits (N, classes) for inputs ``x`` (uint8 or float) in fixed chunks."""
    return torch.cat([model(as_float(part)) for part in x.split(chunk)])


def accuracy(model: nn.Module, data: TensorSet) -> float:
    """Return the share of points whose label ``model`` predicts; NaN on an empty set."""
    if len(data) == 0:
        return float("nan")
    return float((logits(model, data.x).argmax(1) == data.y).double().mean())
