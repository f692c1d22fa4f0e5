"""At which radii Apollo's theorems expect labels to flip, and to stay: margins, Lipschitz constants, distances.

Source: Apollo (arXiv 2506.09923), Lemma III.1 and Theorems III.3 and III.4: with the margin m_θ(x) = f_θ(x)_y −
max_{j≠y} f_θ(x)_j of the model before unlearning, Δ_u = ‖θ_u − θ‖ and Δ_r = ‖θ_r − θ‖ (unlearned and retrained),

    UNDER:  ((m − L_θ Δ_r) / L_x)_+ ≤ r < (m − L_θ Δ_u) / L_x,      OVER: the same with Δ_u and Δ_r exchanged.

Why: by the lemma a model at distance Δ keeps the margin m_θ'(x') ≥ m − L_x r − L_θ Δ, hence the label y, at every x' of
a radius r below (m − L_θ Δ) / L_x, and may leave it from there on. In the interval of UNDER the unlearned model thus
still says y, and the retrained one may have flipped: a flip of the unlearned model there *refutes* the estimate. In
that of OVER the retrained model still says y, and the unlearned one may have flipped: its flip there is what the
theorem is about, and one before the interval refutes. :func:`answers` tells these apart.

The paper leaves the constants open. Estimated here: L_x by the largest input gradient of the margin at random points of
a ball around x, L_θ by its parameter gradient at x. Both are local and are lower bounds of true Lipschitz constants, so
an interval is an estimate that labels may contradict, not a certificate; it is exact for a linear model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn
from torch.func import functional_call

from audits.errors import BadInput

Side = Literal["under", "over"]
EXPECTED, REFUTED, OPEN = "expected", "refuted", "open"


@dataclass(frozen=True)
class RadiusIntervals:
    """(K, 2) float64 ``under`` and ``over``: lowest and highest radius; NaN where the interval is empty.

    ``margin``, ``lipschitz_input``, ``lipschitz_parameters``: (K,) float64 of the model before unlearning.
    """

    under: torch.Tensor
    over: torch.Tensor
    margin: torch.Tensor
    lipschitz_input: torch.Tensor
    lipschitz_parameters: torch.Tensor


def radius_intervals(
    original: nn.Module,
    unlearned: nn.Module,
    retrained: nn.Module,
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    radius: float,
    samples: int = 16,
    seed: int = 0,
    chunk: int = 128,
) -> RadiusIntervals:
    """Return the estimated intervals for points ``x`` (K, …) with labels ``y`` (K,); the models are put into eval mode.

    ``radius`` (L2) and ``samples``: the ball and how many points of it estimate L_x, x itself beside them.
    """
    if radius <= 0 or samples < 1:
        raise BadInput(f"radius is {radius} and samples is {samples}; allowed: above 0 and at least 1")
    for model in (original, unlearned, retrained):
        model.eval()
    value = margin(original, x, y, chunk=chunk)
    along = input_lipschitz(original, x, y, radius=radius, samples=samples, seed=seed, chunk=chunk)
    across = parameter_lipschitz(original, x, y)
    moved, needed = distance(unlearned, original), distance(retrained, original)
    under, over = sides(value, along, across, moved=moved, needed=needed)
    return RadiusIntervals(
        under=under,
        over=over,
        margin=value,
        lipschitz_input=along,
        lipschitz_parameters=across,
    )


def sides(
    value: torch.Tensor, along: torch.Tensor, across: torch.Tensor, *, moved: float, needed: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the intervals (K, 2) of UNDER and OVER from margins, L_x, L_θ (K,), Δ_u ``moved`` and Δ_r ``needed``."""
    return (
        _interval(value, along, across, lower=needed, upper=moved),
        _interval(value, along, across, lower=moved, upper=needed),
    )


def answers(side: Side, span: ArrayLike, flip: ArrayLike, asked: ArrayLike) -> NDArray[np.str_]:
    """Return (K,) what the labels of the unlearned model say of each interval; "" where there is none.

    ``span``: (K, 2) intervals of ``side``, NaN where there is none; ``flip``: (K,) the smallest radius at which the
    unlearned model was seen not to say y, NaN for none; ``asked``: (K,) whether it was asked inside the interval.

    "refuted": it flipped where the estimate says that it cannot, before the end of an interval of UNDER or before the
    beginning of one of OVER. "expected": asked inside, it still said y (UNDER), or had flipped there (OVER). "open":
    not asked inside, or it did not flip there (OVER; another x' may).
    """
    ends, radius = np.asarray(span, dtype=float).reshape(-1, 2), np.asarray(flip, dtype=float)
    low, high = ends[:, 0], ends[:, 1]
    real, seen = np.isfinite(ends).all(axis=1), np.asarray(asked, dtype=bool)
    refuted = radius < (high if side == "under" else low)
    expected = seen if side == "under" else (low <= radius) & (radius < high)
    found = np.where(refuted, REFUTED, np.where(expected, EXPECTED, OPEN))
    return np.where(real, found, "")


def margin(model: nn.Module, x: torch.Tensor, y: torch.Tensor, *, chunk: int = 128) -> torch.Tensor:
    """Return m_θ(x) (K,) float64: the true class's logit minus the largest other one."""
    with torch.no_grad():
        parts = [_margin(model(part), own) for part, own in zip(x.split(chunk), y.split(chunk), strict=True)]
    return torch.cat(parts).double()


def input_lipschitz(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, *, radius: float, samples: int, seed: int, chunk: int = 128
) -> torch.Tensor:
    """Return L_x (K,) float64: the largest ‖∂m/∂x‖₂ at x and at ``samples`` uniform points of the ball."""
    generator = torch.Generator().manual_seed(seed)
    largest = _gradient_norm(model, x, y, chunk)
    for _ in range(samples):
        away = torch.randn(x.flatten(1).shape, generator=generator, dtype=torch.float64)
        length = torch.rand(len(x), 1, generator=generator, dtype=torch.float64) ** (1.0 / away.shape[1])
        away = radius * length * away / away.norm(dim=1, keepdim=True)
        largest = torch.maximum(largest, _gradient_norm(model, x + away.view_as(x).to(x), y, chunk))
    return largest


def parameter_lipschitz(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return L_θ (K,) float64: ‖∂m/∂θ‖₂ over all parameters at x, point by point."""
    weights = {name: part.detach() for name, part in model.named_parameters()}
    buffers = {name: part.detach() for name, part in model.named_buffers()}

    def of_weights(given: dict[str, torch.Tensor], point: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = functional_call(model, (given, buffers), (point[None],))
        return _margin(logits, label[None]).sum()

    slope = torch.func.grad(of_weights)
    norms = []
    for point, label in zip(x, y, strict=True):
        parts = slope(weights, point, label).values()
        norms.append(torch.stack([part.double().square().sum() for part in parts]).sum().sqrt())
    return torch.stack(norms)


def distance(model: nn.Module, other: nn.Module) -> float:
    """Return ‖θ − θ'‖₂ over all parameters; refuses models of different parameters."""
    first, second = dict(model.named_parameters()), dict(other.named_parameters())
    if {name: part.shape for name, part in first.items()} != {name: part.shape for name, part in second.items()}:
        raise BadInput("a distance needs two models of the same parameters; these differ in names or shapes")
    parts = [(first[name].detach().double() - second[name].detach().double()).square().sum() for name in first]
    return float(torch.stack(parts).sum().sqrt())


def _margin(logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return the margins (K,) of logits (K, classes)."""
    own = logits.gather(1, y[:, None]).squeeze(1)
    rest = logits.scatter(1, y[:, None], -torch.inf)
    return own - rest.amax(1)


def _gradient_norm(model: nn.Module, x: torch.Tensor, y: torch.Tensor, chunk: int) -> torch.Tensor:
    """Return ‖∂m/∂x‖₂ (K,) float64 at x."""
    norms = []
    for part, own in zip(x.split(chunk), y.split(chunk), strict=True):
        free = part.detach().requires_grad_()
        (slope,) = torch.autograd.grad(_margin(model(free), own).sum(), free)
        norms.append(slope.double().flatten(1).norm(dim=1))
    return torch.cat(norms)


def _interval(
    value: torch.Tensor, along: torch.Tensor, across: torch.Tensor, *, lower: float, upper: float
) -> torch.Tensor:
    """Return (K, 2): ((m − L_θ·lower)/L_x)_+ and (m − L_θ·upper)/L_x, NaN where nothing lies between them."""
    low = ((value - across * lower) / along).clamp(min=0.0)
    high = (value - across * upper) / along
    return torch.where((low < high)[:, None], torch.stack([low, high], dim=1), torch.nan)
