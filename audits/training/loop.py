"""The one training loop: target, shadow, retrained, reference and student models all go through it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from audits.data.tensors import TensorSet, as_float
from audits.data.views import Views
from audits.memory import by_chunks
from audits.seeds import derive_seed
from audits.training.backward import Backward, Loss
from audits.training.recipe import Recipe
from audits.training.together import Forward


@dataclass(frozen=True)
class EpochReport:
    """The report of an epoch to an observer: index from 0, mean loss, points seen."""

    epoch: int
    loss: float
    points: int


Observer = Callable[[EpochReport], None]


def train_mode(model: nn.Module) -> None:
    """Put ``model`` in train mode, except BatchNorm whose weights are frozen: it keeps and uses its running statistics.

    So a frozen layer computes the same function before, during and after training (``transfer``).
    """
    model.train()
    for module in model.modules():
        weights = list(module.parameters(recurse=False)) if isinstance(module, _BatchNorm) else []
        if weights and not any(weight.requires_grad for weight in weights):
            module.eval()


def entropy_of(forward: Forward, recipe: Recipe) -> Loss:
    """Return the loss of a step: a worker's share of a batch, and all its labels → its mean cross entropy.

    ``forward`` is that of the model for this training.
    """

    def entropy(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.autocast(x.device.type, torch.bfloat16, enabled=recipe.dtype == "bfloat16"):
            return F.cross_entropy(forward(x, len(y)), y, label_smoothing=recipe.label_smoothing)

    return entropy


def step(
    backward: Backward, optimizer: torch.optim.Optimizer, clip_norm: float | None, *batch: torch.Tensor
) -> torch.Tensor:
    """Take one optimiser step on a batch and return its loss, which on a GPU the next step overwrites."""
    loss = backward(*batch)
    if clip_norm is not None:
        nn.utils.clip_grad_norm_(backward.parameters, clip_norm)
    optimizer.step()
    return loss


def batches(points: int, size: int, generator: torch.Generator) -> list[torch.Tensor]:
    """Return one epoch's index tensors in a fresh random order; a last batch of one point joins its neighbour."""
    parts = list(torch.randperm(points, generator=generator).split(size))
    if len(parts) > 1 and len(parts[-1]) == 1:
        last = parts.pop()
        parts[-1] = torch.cat([parts[-1], last])
    return parts


def make_optimizer(model: nn.Module, recipe: Recipe) -> torch.optim.Optimizer:
    """Return the recipe's optimiser over the parameters that need gradients."""
    return optimizer_over([parameter for parameter in model.parameters() if parameter.requires_grad], recipe)


def optimizer_over(parameters: list[torch.Tensor], recipe: Recipe) -> torch.optim.Optimizer:
    """Return the recipe's optimiser over ``parameters``."""
    rate, decay = recipe.learning_rate, recipe.weight_decay
    match recipe.optimizer:
        case "adamw":
            return torch.optim.AdamW(parameters, lr=rate, weight_decay=decay, fused=True)
        case "adam":
            return torch.optim.Adam(parameters, lr=rate, weight_decay=decay, fused=True)
        case "sgd":
            return torch.optim.SGD(parameters, lr=rate, weight_decay=decay, momentum=recipe.momentum)


RISE = 0.2
"""Share of a training in which the rate of ``one_cycle`` rises."""


def make_schedule(optimizer: torch.optim.Optimizer, name: str, epochs: int) -> torch.optim.lr_scheduler.LRScheduler:
    """Return the per-epoch schedule ``constant``, ``cosine`` (to zero over ``epochs``) or ``one_cycle``.

    ``one_cycle`` rises in a straight line from zero to the rate and falls to zero again (Smith & Topin,
    arXiv 1708.07120, without its second, lower fall); an epoch has the rate of its middle.
    """
    if name == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max(1, epochs))
    if name == "one_cycle":
        return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: one_cycle((epoch + 0.5) / max(1, epochs)))
    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 1.0)


def one_cycle(place: float) -> float:
    """Return the share of the highest rate at ``place``, from 0 at the beginning of a training to 1 at its end."""
    return max(0.0, min(place / RISE, (1 - place) / (1 - RISE)))


def augmented(x: torch.Tensor, shift: int, flip: bool, generator: torch.Generator) -> torch.Tensor:
    """Return images (N, C, H, W) shifted by up to ``shift`` pixels with zero padding and, on request, mirrored."""
    return shifted(x, shift, flip, drawn_shifts(len(x), shift, flip, generator))


def drawn_shifts(count: int, shift: int, flip: bool, generator: torch.Generator) -> torch.Tensor:
    """Draw (N, 3) int64: whether an image is mirrored, and the place of its window, ``shift`` where it stays."""
    found = torch.tensor([0, shift, shift]).repeat(count, 1)
    if flip:
        found[:, 0] = torch.rand(count, generator=generator) < 0.5
    if shift:
        found[:, 1:] = torch.randint(0, 2 * shift + 1, (count, 2), generator=generator)
    return found


def shifted(x: torch.Tensor, shift: int, flip: bool, drawn: torch.Tensor) -> torch.Tensor:
    """Return images (N, C, H, W) mirrored and shifted as ``drawn`` (N, 3) says; see ``drawn_shifts``."""
    drawn = drawn.to(x.device)
    if flip:
        x = torch.where(drawn[:, 0, None, None, None] == 1, x.flip(-1), x)
    return windows(F.pad(x, [shift] * 4), drawn[:, 1:], x.shape[-2:]) if shift else x


def windows(x: torch.Tensor, offsets: torch.Tensor, size: Sequence[int]) -> torch.Tensor:
    """Return the part (N, C, *size) of each image of ``x`` (N, C, H, W) that begins at its own ``offsets`` (N, 2)."""
    images, channels, rows, columns = (torch.arange(count, device=x.device) for count in (*x.shape[:2], *size))
    rows, columns = offsets[:, 0, None] + rows, offsets[:, 1, None] + columns
    return x[images[:, None, None, None], channels[:, None, None], rows[:, None, :, None], columns[:, None, None]]


def views_of(recipe: Recipe, seed: int, epoch: int) -> Views | None:
    """Return how the images of an epoch are seen, mirrored too if the recipe flips; None where it crops nothing."""
    if recipe.random_crop is None:
        return None
    return Views(derive_seed(seed, "views"), epoch, recipe.random_crop, recipe.flip)


@torch.no_grad()
def logits(model: nn.Module, x: torch.Tensor, chunk: int = 1024) -> torch.Tensor:
    """Return ``model``'s logits (N, classes) for inputs ``x`` (uint8 or float) in fixed chunks (``by_chunks``)."""
    return torch.cat(by_chunks(lambda rows: model(as_float(x[rows])), len(x), chunk))


def accuracy(model: nn.Module, data: TensorSet) -> float:
    """Return the share of points whose label ``model`` predicts; NaN on an empty set."""
    if len(data) == 0:
        return float("nan")
    return float((logits(model, data.x).argmax(1) == data.y).double().mean())
