"""Model inversion (MI-Face): an image that a model takes for one of its classes, found from the model alone.

Source: Fredrikson, Jha, Ristenpart, CCS 2015 (doi 10.1145/2810103.2813677), algorithm 1, access white box: minimise
1 − p_y(x) plus an auxiliary term, here total variation, and keep the iterate of least cost. Deviations: Adam in place
of plain gradient descent, a fixed number of steps in place of stopping early, starts at the mean image rather than at
0, and of their image processing only the clamp to the allowed range.

An image of a class that resembles a training image need not show that this one was memorised: it may resemble the whole
class. So a reconstruction is compared with the image in question and with the mean of its class.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from audits.arrays import Floats
from audits.data.dataset import IMAGE_RANGE
from audits.errors import BadInput
from audits.gnq.inversion_settings import InversionSettings
from audits.gradients.capture import logits_of
from audits.gradients.validate import made_auditable
from audits.seeds import Purpose, derive_seed, torch_generator

WINDOW, SIGMA = 11, 1.5  # of SSIM's gaussian, in pixels
K1, K2 = 0.01, 0.03  # of SSIM's constants, in units of the value range


@dataclass(frozen=True)
class Inversion:
    """Found images: ``images`` (labels, starts, C, H, W) and how sure the model is of them, p_y (labels, starts)."""

    images: torch.Tensor
    confidence: torch.Tensor


@dataclass(frozen=True)
class Likeness:
    """Likeness of reconstructions to one training image and to the mean of its class, each float64, one an image.

    SSIM: 1 is equal. Mean squared error: in squared units of the inputs, 0 is equal.
    """

    ssim_image: Floats
    ssim_class_mean: Floats
    mse_image: Floats
    mse_class_mean: Floats


def invert(
    model: nn.Module,
    labels: list[int],
    mean: torch.Tensor,
    settings: InversionSettings | None = None,
    *,
    seed: int,
    value_range: tuple[float, float] = IMAGE_RANGE,
) -> Inversion:
    """Return the images of least 1 − p_y(x) + tv · TV(x) met on the way, for every label and start.

    ``model``: logits of images (n, C, H, W); it is copied, never changed, and asked in eval mode. ``mean`` (C, H, W)
    float, within ``value_range``, which every image keeps to: the starting point. All labels and starts are searched
    side by side, in the dtype and on the device of ``mean``; none has influence on another. Every label has the same
    noise in its starts. Raises BadInput for labels that the model does not have, for a mean that is no image in the
    range, and for a model that is not finite or mixes the points of a batch.
    """
    chosen = settings or InversionSettings()
    low, high = value_range
    if mean.ndim != 3 or not mean.is_floating_point() or not bool(((mean >= low) & (mean <= high)).all()):
        raise BadInput(
            f"mean is {mean.dtype} of shape {tuple(mean.shape)}; give a float image (channels, height, width) with "
            f"values from {low} to {high}"
        )
    silent = made_auditable(model).requires_grad_(False).to(mean.device, mean.dtype)
    with torch.no_grad():
        classes = logits_of(silent(mean[None])).shape[1]
    if not labels or min(labels) < 0 or max(labels) >= classes:
        raise BadInput(f"labels are {labels}; allowed: one or more from 0 to {classes - 1}, the model's classes")
    y = torch.tensor(labels, device=mean.device).repeat_interleave(chosen.starts)
    x = starts(mean, chosen, seed, value_range).repeat(len(labels), 1, 1, 1)
    images, confidence = searched(silent, x, y, chosen, value_range)
    return Inversion(images.unflatten(0, (len(labels), -1)), confidence.unflatten(0, (len(labels), -1)))


def starts(
    mean: torch.Tensor, settings: InversionSettings, seed: int, value_range: tuple[float, float]
) -> torch.Tensor:
    """Return where the search begins, (starts, C, H, W): the mean image, then noisy copies of it."""
    shape = (settings.starts, *mean.shape)
    noise = torch.randn(
        shape, generator=torch_generator(derive_seed(seed, Purpose.INVERSION_STARTS)), dtype=torch.float64
    )
    noise[0] = 0
    return (mean + settings.spread * noise.to(mean)).clamp(*value_range)


def searched(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, settings: InversionSettings, value_range: tuple[float, float]
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the images (n, C, H, W) of least cost on the way from ``x``, and p_y of each (n,)."""
    x = x.clone().requires_grad_(True)
    optimizer = torch.optim.Adam([x], lr=settings.learning_rate)
    best, least = x.detach().clone(), torch.full((len(x),), float("inf"), device=x.device, dtype=x.dtype)
    confidence = torch.zeros_like(least)
    for step in range(settings.steps + 1):
        with torch.enable_grad():
            p = logits_of(model(x)).softmax(1).gather(1, y[:, None])[:, 0]
            cost = 1 - p + settings.tv * total_variation(x)
        better = cost.detach() < least
        best[better], least[better], confidence[better] = x.detach()[better], cost.detach()[better], p.detach()[better]
        if step < settings.steps:
            (x.grad,) = torch.autograd.grad(cost.sum(), x)
            optimizer.step()
            x.data.clamp_(*value_range)
    return best, confidence


def total_variation(x: torch.Tensor) -> torch.Tensor:
    """Return Σ |difference of neighbours|, down and across, over the numbers of an image (n, C, H, W): (n,)."""
    down, across = x.diff(dim=2).abs().flatten(1).sum(1), x.diff(dim=3).abs().flatten(1).sum(1)
    return (down + across) / x[0].numel()


def mse(a: torch.Tensor, b: torch.Tensor) -> Floats:
    """Return the mean squared difference of images (..., C, H, W) that broadcast, (...) float64."""
    found: Floats = (a.double() - b.double()).square().mean((-3, -2, -1)).cpu().numpy()
    return found


def ssim(a: torch.Tensor, b: torch.Tensor, value_range: tuple[float, float] = IMAGE_RANGE) -> Floats:
    """Return the structural similarity of images (..., C, H, W) that broadcast, (...) float64 ≤ 1; 1 is equal.

    Source: Wang, Bovik, Sheikh, Simoncelli, IEEE TIP 13(4), 2004, eq. 13: gaussian window of 11 × 11 pixels and
    σ = 1.5, C1 = (0.01 L)², C2 = (0.03 L)², L the width of ``value_range``; the mean over all windows that lie within
    the image, and over channels. Raises BadInput for images smaller than the window.
    """
    a, b = torch.broadcast_tensors(a.double(), b.double())
    if a.ndim < 3 or min(a.shape[-2:]) < WINDOW:
        raise BadInput(
            f"images have shape {tuple(a.shape)}; SSIM needs (..., channels, height, width), {WINDOW} pixels or more "
            "a side: scale them up, or use mse"
        )
    first, second = (image.reshape(-1, 1, *image.shape[-2:]) for image in (a, b))
    mean_a, mean_b, square_a, square_b, product = (
        windowed(image) for image in (first, second, first * first, second * second, first * second)
    )
    variances = square_a - mean_a**2 + square_b - mean_b**2
    width = value_range[1] - value_range[0]
    c1, c2 = (K1 * width) ** 2, (K2 * width) ** 2
    likeness = (2 * mean_a * mean_b + c1) * (2 * (product - mean_a * mean_b) + c2)
    likeness /= (mean_a**2 + mean_b**2 + c1) * (variances + c2)
    found: Floats = likeness.mean((-3, -2, -1)).reshape(a.shape[:-2]).mean(-1).cpu().numpy()
    return found


def windowed(images: torch.Tensor) -> torch.Tensor:
    """Return the gaussian mean of every window of ``images`` (n, 1, H, W): (n, 1, H − 10, W − 10)."""
    offset = torch.arange(WINDOW, dtype=images.dtype, device=images.device) - WINDOW // 2
    weights = (-(offset**2) / (2 * SIGMA**2)).exp()
    weights = weights / weights.sum()
    return F.conv2d(F.conv2d(images, weights[None, None, :, None]), weights[None, None, None, :])


def compare(
    reconstruction: torch.Tensor,
    image: torch.Tensor,
    class_mean: torch.Tensor,
    value_range: tuple[float, float] = IMAGE_RANGE,
) -> Likeness:
    """Return how like ``reconstruction`` (..., C, H, W) is to ``image`` and to ``class_mean``, both (C, H, W).

    ``image``: the training image in question, such as the one removed. ``class_mean``: the mean of its class without
    it, or the image counts on both sides. All in ``value_range``. Raises BadInput as ``ssim`` does.
    """
    return Likeness(
        ssim_image=ssim(reconstruction, image, value_range),
        ssim_class_mean=ssim(reconstruction, class_mean, value_range),
        mse_image=mse(reconstruction, image),
        mse_class_mean=mse(reconstruction, class_mean),
    )
