"""Inputs whose gradient matches a given one, found by optimisation: DLG, and cosine distance with total variation.

Sources. ``dlg``: Zhu, Liu and Han, arXiv 1906.08935, algorithm 1: ‖∇(x) − g‖² by L-BFGS. Deviations: labels are given
(inferred for single points, as iDLG does), the distance is divided by ‖g‖², which moves no minimum, L-BFGS has a line
search, starts are uniform in the range of the inputs, and what is found is cut to that range at the end.
``geiping``: Geiping, Bauermeister, Dröge and Moeller, arXiv 2003.14053, eq. 4: 1 − cos(∇(x), g) + α·TV(x) by Adam on
the signs of the gradient, cut to the range after every step, step size divided by 10 after 3/8, 5/8 and 7/8 of them.
Deviations: the iterate of least cost is kept rather than the last, and starts are uniform rather than gaussian.

ReLU networks are piecewise linear: the second derivative that DLG follows is 0 within a piece but for the curvature of
cross-entropy and of products of layers, and its cost jumps between pieces; DLG's authors took smooth activations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn
from torch.func import grad_and_value, vmap

from audits.data.dataset import IMAGE_RANGE
from audits.errors import BadInput
from audits.gnq.gradient_inversion.first_layer import first_layer_inputs
from audits.gnq.gradient_inversion.gradients import Gradients, loss_gradient, weights_of
from audits.gnq.gradient_inversion.quasi_newton import minimised
from audits.gnq.gradient_inversion.settings import ANALYTIC, DLG, GEIPING, METHODS, GradientInversionSettings
from audits.gnq.inversion import total_variation
from audits.gradients.capture import exact, logits_of
from audits.gradients.validate import check_labels, made_auditable
from audits.memory import by_chunks
from audits.seeds import derive_seed, torch_generator

DECAYS = (3 / 8, 5 / 8, 7 / 8)
"""Shares of the steps after which ``geiping`` divides its step size by 10."""
Cost = Callable[[torch.Tensor], tuple[torch.Tensor, torch.Tensor]]
"""Inputs (P, B, …) to the gradients of the costs (P, B, …) and the costs (P,)."""


@dataclass(frozen=True)
class Reconstruction:
    """Found inputs of P problems: ``images`` (P, B, C, H, W), in no order within a batch, and ``cost`` (P,) at them."""

    images: torch.Tensor
    cost: torch.Tensor


def reconstruct(
    model: nn.Module,
    gradients: Gradients,
    labels: torch.Tensor,
    shape: tuple[int, ...],
    method: str,
    settings: GradientInversionSettings | None = None,
    *,
    seed: int,
    value_range: tuple[float, float] = IMAGE_RANGE,
    chunk: int = 32,
) -> Reconstruction:
    """Return inputs whose mean gradient is each of ``gradients`` (parameter → (P, …)), as far as ``method`` gets.

    ``model``: copied, never changed, and asked in eval mode, in the dtype and on the device of the gradients.
    ``labels`` (P, B) int64: those of each problem's B points, in any order. All problems start from the same inputs, so
    that no point owes its rank to its start; about ``chunk`` inputs are searched side by side and have no influence on
    each other. ``analytic`` has no cost (NaN). Raises BadInput for a method that does not exist, labels and gradients
    that do not fit the model, and a model that is not finite or mixes points.
    """
    chosen = settings or GradientInversionSettings()
    first = next(iter(gradients.values()))
    asked = made_auditable(model).to(first.device, first.dtype)
    check(asked, gradients, labels, shape, method)
    if method == ANALYTIC:
        if labels.shape[1] != 1:
            raise BadInput(
                f"batches have {labels.shape[1]} points; method analytic reads the gradient of a single point"
            )
        images = first_layer_inputs(asked, gradients, shape, value_range)[:, None].clamp(*value_range)
        return Reconstruction(images, torch.full((len(labels),), float("nan"), dtype=first.dtype))
    size = max(1, chunk // labels.shape[1])
    with exact(first.device):
        found = [
            searched(asked, gradients, labels, start, method, chosen, value_range, size)
            for start in starts((labels.shape[1], *shape), chosen.starts, seed, value_range).to(first)
        ]
    best = torch.stack([each.cost for each in found]).nan_to_num(float("inf")).argmin(0)
    every = torch.arange(len(best), device=best.device)
    images, cost = torch.stack([each.images for each in found]), torch.stack([each.cost for each in found])
    return Reconstruction(images[best, every], cost[best, every])


def check(model: nn.Module, gradients: Gradients, labels: torch.Tensor, shape: tuple[int, ...], method: str) -> None:
    """Refuse methods, gradients and labels that do not exist or do not fit the model."""
    if method not in METHODS:
        raise BadInput(f"method is {method!r}; allowed: {', '.join(METHODS)}")
    shapes = {name: (len(labels), *weight.shape) for name, weight in weights_of(model).items()}
    if {name: tuple(each.shape) for name, each in gradients.items()} != shapes:
        raise BadInput(
            f"gradients: they must have one row for each of the {len(labels)} problems and every parameter that trains "
            f"({', '.join(shapes)}); take them from point_gradients and mean_of"
        )
    if labels.ndim != 2 or not labels.numel():
        raise BadInput(f"labels have shape {tuple(labels.shape)}; allowed: (problems, points of a batch), not empty")
    with torch.no_grad():
        classes = logits_of(model(next(model.parameters()).new_zeros(1, *shape))).shape[1]
    check_labels(labels.flatten(), classes)


def starts(shape: tuple[int, ...], count: int, seed: int, value_range: tuple[float, float]) -> torch.Tensor:
    """Return the inputs that searches start from, (count, *shape) float64, uniform in ``value_range``."""
    generator = torch_generator(derive_seed(seed, "gradient inversion starts"))
    low, high = value_range
    return low + (high - low) * torch.rand((count, *shape), generator=generator, dtype=torch.float64)


def searched(
    model: nn.Module,
    gradients: Gradients,
    labels: torch.Tensor,
    start: torch.Tensor,
    method: str,
    settings: GradientInversionSettings,
    value_range: tuple[float, float],
    chunk: int,
) -> Reconstruction:
    """Return what ``method`` finds from one ``start`` (B, …), ``chunk`` problems at a time."""

    def part(rows: slice) -> Reconstruction:
        given = {name: each[rows] for name, each in gradients.items()}
        cost = costs(model, given, labels[rows], method, settings)
        x = start.expand(len(labels[rows]), *start.shape)
        if method == GEIPING:
            return signed_adam(cost, x, settings, value_range)
        return quasi_newton(cost, x, settings, value_range)

    parts = by_chunks(part, len(labels), chunk)
    return Reconstruction(torch.cat([each.images for each in parts]), torch.cat([each.cost for each in parts]))


def costs(
    model: nn.Module, gradients: Gradients, labels: torch.Tensor, method: str, settings: GradientInversionSettings
) -> Cost:
    """Return the function from inputs of all problems to the gradients of their costs, and the costs."""
    distance = squared_distance if method == DLG else one_minus_cosine
    weight = settings.tv if method == GEIPING else 0.0
    one = partial(cost_of, model, weights_of(model), distance, weight)
    whole = vmap(grad_and_value(one), in_dims=(0, 0, 0))
    targets = dict(gradients)
    return lambda x: whole(x, labels, targets)


def cost_of(
    model: nn.Module,
    weights: dict[str, torch.Tensor],
    distance: Callable[[Gradients, Gradients], torch.Tensor],
    tv: float,
    x: torch.Tensor,
    y: torch.Tensor,
    target: Gradients,
) -> torch.Tensor:
    """Return the cost of inputs ``x`` (B, …) of one problem, whose gradient should be ``target`` (parameter → …)."""
    found = distance(loss_gradient(model, weights, x, y), target)
    return found + tv * total_variation(x).mean() if tv else found


def squared_distance(found: Gradients, target: Gradients) -> torch.Tensor:
    """Return ‖found − target‖² / ‖target‖² over all parameters; a target of 0 counts as the smallest number."""
    size = dot(target, target)
    return sum_of((found[name] - target[name]).square().sum() for name in target) / tiny(size)


def one_minus_cosine(found: Gradients, target: Gradients) -> torch.Tensor:
    """Return 1 − cos of the angle between two gradients over all parameters; 1 where either is 0."""
    return 1 - dot(found, target) / tiny(dot(found, found)).sqrt() / tiny(dot(target, target)).sqrt()


def dot(a: Gradients, b: Gradients) -> torch.Tensor:
    """Return the inner product over all parameters."""
    return sum_of((a[name] * b[name]).sum() for name in b)


def sum_of(parts: Iterable[torch.Tensor]) -> torch.Tensor:
    """Return the sum of numbers, one a parameter."""
    return torch.stack(list(parts)).sum()


def tiny(value: torch.Tensor) -> torch.Tensor:
    """Return ``value``, kept from 0."""
    return value + torch.finfo(value.dtype).tiny


def signed_adam(
    cost: Cost, start: torch.Tensor, settings: GradientInversionSettings, value_range: tuple[float, float]
) -> Reconstruction:
    """Return the inputs of least cost on the way of Adam on signs from ``start`` (P, B, …)."""
    x = start.clone()
    optimizer = torch.optim.Adam([x], lr=settings.learning_rate)
    decays = [round(share * settings.steps) for share in DECAYS]
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, decays, gamma=0.1)
    best, least = x.clone(), torch.full((len(x),), float("inf"), dtype=x.dtype, device=x.device)
    for step in range(settings.steps + 1):
        slope, value = cost(x)
        better = value < least
        best[better], least[better] = x[better], value[better]
        if step < settings.steps:
            x.grad = slope.sign()
            optimizer.step()
            scheduler.step()
            x.clamp_(*value_range)
    return Reconstruction(best, least)


def quasi_newton(
    cost: Cost, start: torch.Tensor, settings: GradientInversionSettings, value_range: tuple[float, float]
) -> Reconstruction:
    """Return the inputs that L-BFGS reaches from ``start`` (P, B, …), cut to ``value_range``."""

    def evaluate(flat: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        slope, value = cost(flat.unflatten(1, start.shape[1:]))
        return value, slope.flatten(1)

    found, value = minimised(evaluate, start.flatten(1), settings.steps)
    return Reconstruction(found.unflatten(1, start.shape[1:]).clamp(*value_range), value)
