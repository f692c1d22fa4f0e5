"""The label of a single point, read off its gradient.

Source: Zhao, Mopuri and Bilen, iDLG, arXiv 2001.02610, section 3: of cross-entropy's gradient at the logits, p − 1_y,
only the entry of the label is negative, and the output layer's gradients repeat its signs.
"""

from __future__ import annotations

import torch
from torch import nn

from audits.errors import BadInput
from audits.gnq.gradient_inversion.gradients import Gradients


def inferred_labels(model: nn.Module, gradients: Gradients) -> torch.Tensor:
    """Return the labels (P,) int64 of single points by their ``gradients``, parameter → (P, …).

    By the output layer's bias, whose gradient is p − 1_y; without one by its weight, of which the row of the label has
    negative products with all others. A gradient that rounded to 0 gives label 0. Raises BadInput where the last layer
    with weights is not fully connected or does not train.
    """
    layers = {name: module for name, module in model.named_modules() if isinstance(module, nn.Linear)}
    names = [name for name, module in model.named_modules() if list(module.parameters(recurse=False))]
    last = names[-1] if names else ""
    if last not in layers or f"{last}.weight".lstrip(".") not in gradients:
        raise BadInput(
            "model: its last layer with weights is not a fully connected one that trains, so that labels cannot be "
            "read off a gradient; give the labels"
        )
    bias = gradients.get(f"{last}.bias".lstrip("."))
    if bias is not None:
        return bias.argmin(1)
    rows = gradients[f"{last}.weight".lstrip(".")]
    products = rows @ rows.mT
    others = products.sum(2) - products.diagonal(dim1=1, dim2=2)
    return others.argmin(1)
