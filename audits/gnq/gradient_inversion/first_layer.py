"""The input of a first fully connected layer, read off the gradient of a single point: no search, and exact.

Source: Geiping, Bauermeister, Dröge and Moeller, arXiv 2003.14053, proposition 3.1 (after Phong et al. 2017): the
gradient of W x + b has ∂L/∂W_i = ∂L/∂b_i · x, so that any unit with ∂L/∂b_i ≠ 0 tells x.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from audits.errors import BadInput
from audits.gnq.gradient_inversion.gradients import Gradients


def first_layer(model: nn.Module) -> str | None:
    """Return the name of the first layer with weights where it is fully connected and has a bias, else None."""
    for name, module in model.named_modules():
        if list(module.parameters(recurse=False)):
            return name if isinstance(module, nn.Linear) and module.bias is not None else None
    return None


def first_layer_inputs(
    model: nn.Module, gradients: Gradients, shape: Sequence[int], value_range: tuple[float, float]
) -> torch.Tensor:
    """Return the inputs (P, *shape) of single points by their ``gradients``, parameter → (P, …).

    Least squares over the layer's units, Σ_i ∂b_i ∂W_i / Σ_i ∂b_i². A point whose gradient is 0 tells nothing and gives
    the middle of ``value_range``. Raises BadInput for a model that does not begin with a fully connected layer with a
    bias, or whose layer does not read the input itself.
    """
    name = first_layer(model)
    weights, biases = f"{name}.weight".lstrip("."), f"{name}.bias".lstrip(".")
    if name is None or not {weights, biases} <= gradients.keys():
        raise BadInput(
            "model: its first layer with weights is not a fully connected one with a bias that trains, which method "
            "analytic reads; use an mlp, or dlg or geiping"
        )
    weight, bias = gradients[weights], gradients[biases]
    if weight.shape[2] != torch.Size(shape).numel():
        raise BadInput(
            f"model: layer {name} reads {weight.shape[2]} numbers, but an input has shape {tuple(shape)}; method "
            "analytic needs a layer that reads the input itself"
        )
    scale = bias.abs().amax(1, keepdim=True)
    silent = scale == 0
    bias, weight = bias / scale.masked_fill(silent, 1), weight / scale.masked_fill(silent, 1)[:, :, None]
    found = torch.einsum("pu,pud->pd", bias, weight) / bias.square().sum(1, keepdim=True).masked_fill(silent, 1)
    return found.masked_fill(silent, sum(value_range) / 2).reshape(-1, *shape)
