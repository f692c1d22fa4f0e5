"""The fast engine of DP-SGD: a single point's gradient is made only where that is cheaper than its norm without it.

One forward pass, and one backward pass that stops at the outputs of the layers, show what every layer was given (a) and
the gradient of what it returned (b). The rules that measure disclosure (``audits.gradients.layers``) turn them into
- the norm of each point's gradient, for linear layers and embeddings, and for convolutions with few positions, without
  that gradient: Σ_t,s (a_t·a_s)(b_t·b_s) (Goodfellow, arXiv 1510.01799; Li et al., arXiv 2110.05679); for other
  convolutions and for norms from the gradients themselves, which are small there (Bu et al., arXiv 2205.10683);
- the sum of the bounded gradients, from the same a and b: Σ_i c_i Σ_t b_t a_tᵀ, the gradient of the batch as if it were
  one long point. No second pass is made (Bu et al., arXiv 2210.00038).
A layer is read so only after its rule gave autograd's gradients on some points; other parameters (of attention, tied
weights) are read by ``vmap(grad)`` through the whole model.
"""

from __future__ import annotations

from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.gradients.engine import Held, Piece, passed, pieces
from audits.gradients.layers import rule_of
from audits.gradients.model_copies import contiguous
from audits.gradients.products import outer_rule, squares
from audits.gradients.survey import SAMPLE, Survey, spread, surveyed
from audits.gradients.validate import FIX, made_auditable, rate_of
from audits.training.engines.base import ENGINES, REMEDY, Engine, Noise, check_norms
from audits.training.loop import augmented, make_optimizer
from audits.training.recipe import Recipe

MOST_POINTS = 256  # in one pass
MOST_NUMBERS = 2**27  # held of the points of one pass
ALIVE = 0.01  # added to the size of weights that are only tried, since some start at zero


@ENGINES.register("fast")
class FastEngine(Engine):
    """Gradients of single points read off one pass, layer by layer (``audits.gradients``)."""

    def __init__(self, model: nn.Module, data: TensorSet, recipe: Recipe, noise: Noise) -> None:
        """Lay ``model`` out for reading. BadInput for models whose points have no gradient of their own."""
        check_readable(model)
        self.data, self.recipe, self.noise = data, recipe, noise
        self.loss = torch.zeros((), dtype=torch.float64)
        self.student = student = contiguous(model).train()
        self.inner = make_optimizer(student, recipe)
        found = read_by(model, data)
        student.requires_grad_(False)
        self.survey = replace(found, model=student, dtype=next(student.parameters()).dtype, residual=self.residual)
        self.pieces = pieces(self.survey, "norms", MOST_NUMBERS)
        numbers = sum(piece.size for piece in self.pieces) + max(held_while_made(self.survey))
        self.at_once = max(1, min(MOST_POINTS, MOST_NUMBERS // numbers))
        if found.whole:
            self.try_whole()

    @classmethod
    def check(cls, model: nn.Module) -> None:
        """Refuse a model that cannot be read; some are refused only when training tries their layers out on data."""
        check_readable(model)

    def step(self, rows: torch.Tensor, shifts: torch.Generator) -> torch.Tensor:
        """Take one noisy step on ``rows`` of the data and return their summed loss; without rows it is noise alone."""
        sums = {name: torch.zeros_like(self.survey.model.get_parameter(name)) for name in self.survey.wanted}
        total = torch.zeros((), dtype=torch.float64, device=self.data.y.device)
        for x, y in self.data.batches(rows.split(self.at_once) if len(rows) else ()):
            if self.recipe.augment_shift or self.recipe.flip:
                x = augmented(x, self.recipe.augment_shift, self.recipe.flip, shifts)
            for name, found in bounded_sums(self.survey, self.pieces, x, y, self.noise.bound).items():
                sums[name] += found.reshape(sums[name].shape)
            total += self.loss
        for name, found in sums.items():
            self.survey.model.get_parameter(name).grad = self.noise.mean(found)
        self.inner.step()
        return total

    def weights(self) -> dict[str, torch.Tensor]:
        """Return the state dict of the trained model."""
        return self.survey.model.state_dict()

    def residual(self, logits: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Return the gradient of the recipe's loss, summed over the points, at the logits; keep the loss."""
        leaf = logits.detach().requires_grad_(True)
        with torch.enable_grad():
            loss = F.cross_entropy(leaf, y, label_smoothing=self.recipe.label_smoothing, reduction="sum")
            (gradient,) = torch.autograd.grad(loss, leaf)
        self.loss = loss.detach().double()
        return gradient

    def try_whole(self) -> None:
        """Refuse a model of which some parameters can be read neither by a rule nor by ``vmap`` as it trains."""
        if not self.survey.batched:
            raise unreadable(self.survey.whole[0], "vmap does not give its gradient")
        try:
            passed(self.survey, self.pieces, *self.data.batch(probe_rows(self.data)), checked=False)
        except RuntimeError as error:  # an operation without a batching rule, or one that draws at random
            raise unreadable(self.survey.whole[0], " ".join(str(error).split())[:120]) from error


def check_readable(model: nn.Module) -> None:
    """Refuse BatchNorm, and weights that only ``vmap`` could read in a model that drops at random."""
    check_norms(model)
    random = [name for name, module in model.named_modules() if rate_of(module) > 0]
    for name, module in model.named_modules():
        for own, parameter in module.named_parameters(recurse=False):
            if random and parameter.requires_grad and rule_of(module) is None:
                raise unreadable(f"{name}.{own}".lstrip("."), f"no rule, and {random[0]} drops at random")


def unreadable(parameter: str, reason: str) -> BadInput:
    """Return the error of a parameter that cannot be read for each point."""
    return BadInput(
        f"recipe: private training does not work with this model ({parameter} cannot be read for each point: {reason})"
        f"; {REMEDY}, or try recipe.private_engine: opacus"
    )


def read_by(model: nn.Module, data: TensorSet) -> Survey:
    """Return how each parameter of ``model`` that trains is read, tried in eval mode (no dropout) and in float64.

    A layer whose gradients are all zero shows nothing. So a model with such layers is tried again with positive weights
    and inputs, which leave no ReLU dead: the rule of a layer does not depend on them. What the model's own weights have
    refuted stays refuted.
    """
    x, y = data.batch(probe_rows(data))
    try:
        first = tried(made_auditable(model), x, y)
    except BadInput as error:
        reason = str(error).removeprefix("model: ").replace(f"{FIX}, and ", "")
        raise BadInput(f"recipe: private training needs each point's own gradient: {reason}") from error
    if not first.whole:
        return first
    alive = made_auditable(model)
    for parameter in alive.parameters():
        parameter.data.abs_().add_(ALIVE)
    try:
        second = tried(alive, x.abs(), y)
    except BadInput:  # such weights may give logits that are not finite
        return first
    return with_layers(first, second)


def with_layers(first: Survey, second: Survey) -> Survey:
    """Return ``first`` with the layers of ``second`` of which it knew nothing; those that it refuted stay out."""
    known = {layer.module for layer in first.tapped}
    added = tuple(layer for layer in second.tapped if layer.module not in known | first.refuted)
    read = {name for layer in added for name in layer.parameters.values()}
    whole = tuple(name for name in first.whole if name not in read)
    batched = bool(whole) and (first.batched or second.batched)
    return replace(first, tapped=(*first.tapped, *added), whole=whole, batched=batched)


def tried(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> Survey:
    """Return how ``model`` is read, by trying it on some points."""
    with surveyed(model, x, y, dtype=torch.float64) as found:
        return found


def probe_rows(data: TensorSet) -> torch.Tensor:
    """Return the indices of some points, spread over all; a set of one point gives it twice."""
    return torch.tensor(spread(len(data), SAMPLE), device=data.y.device)


def held_while_made(survey: Survey) -> list[int]:
    """Return, for every layer, how many numbers of a and b there are of one point."""
    return [0, *(layer.positions * layer.ghost_numbers for layer in survey.tapped)]


def bounded_sums(
    survey: Survey, layout: list[Piece], x: torch.Tensor, y: torch.Tensor, bound: float
) -> dict[str, torch.Tensor]:
    """Return, for each parameter, the flat sum over points of gradients scaled to a norm of at most ``bound``.

    The norm is that of a point's whole gradient, over all parameters, worked out in float64: the terms of a ghost norm
    cancel.
    """
    found = passed(survey, layout, x, y, checked=False)  # a second gradient at each step would cost a third of it
    total = torch.stack([squares(survey, piece, held) for piece, held in zip(layout, found, strict=True)]).sum(0)
    scale = (bound / total.clamp(min=0).sqrt()).clamp(max=1)
    return {
        piece.parameter: weighted_sum(survey, piece, held, scale.to(held[-1].dtype))
        for piece, held in zip(layout, found, strict=True)
    }


def weighted_sum(survey: Survey, piece: Piece, held: Held, scale: torch.Tensor) -> torch.Tensor:
    """Return Σ_i scale_i · gradient_i of one piece, flat; ``scale`` is (n,)."""
    if not piece.ghost:
        return scale @ held[0]
    a, b = held
    assert piece.module is not None
    return outer_rule(survey, piece).weighted(survey.model.get_submodule(piece.module), a, b, scale)
