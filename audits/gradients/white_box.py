"""Features of points for an attacker with the weights: the loss, its gradient layer by layer, the last activations.

Features of the white-box attack of Nasr, Shokri, Houmansadr, "Comprehensive Privacy Analysis of Deep Learning", arXiv
1812.00910. Deviation: gradients enter by their norms, one a parameter tensor, not by their numbers.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import nn

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.gradients.capture import answer
from audits.gradients.engine import parts, passed, pieces
from audits.gradients.gram import CHUNK, MEMORY, check_finite, checked_limit
from audits.gradients.products import squares
from audits.gradients.survey import Survey, surveyed
from audits.models.layers import layers_of


def white_box_features(
    model: nn.Module, data: TensorSet, *, chunk: int = CHUNK, memory: int = MEMORY
) -> NDArray[np.float32]:
    """Return features (N, 1 + parameters + width + classes) float32 of every point of ``data``.

    Columns: the cross-entropy in nats; the norm of its gradient in each parameter tensor that requires one, in the
    model's order; the inputs of the last linear layer; the logits. All are computed in float64. ``chunk`` points pass
    at once; gradients are held as ghosts or as numbers, whichever is less, in at most ``memory`` bytes or one layer of
    ``chunk`` points. The model must be auditable (eval mode), and is copied, never changed. Raises BadInput as
    :func:`audits.gradients.gram.squared_norms` does, for a model that does not end in a linear layer, and where that
    layer does not see one vector a point.
    """
    limit = checked_limit(chunk, chunk, None, memory, torch.float64)
    head = layers_of(model)[-1].name
    with surveyed(model, data.x, data.y, chunk=chunk) as survey:
        loss, hidden, logits = outputs(survey, survey.model.get_submodule(head), data, chunk)
        norms = gradient_norms(survey, data, limit, chunk)
    found: NDArray[np.float32] = torch.cat([loss, norms, hidden, logits], 1).float().cpu().numpy()
    return found


def gradient_norms(survey: Survey, data: TensorSet, limit: int, chunk: int) -> torch.Tensor:
    """Return the norm of each point's gradient in each parameter tensor, (N, parameters) float64."""
    column = {name: index for index, name in enumerate(survey.wanted)}
    total = torch.zeros(len(data), len(column), dtype=torch.float64, device=survey.device)
    for part in parts(pieces(survey, "norms", limit), limit):
        for low in range(0, len(data), chunk):
            rows = slice(low, low + chunk)
            for piece, one in zip(part, passed(survey, part, data.x[rows], data.y[rows]), strict=True):
                total[rows, column[piece.parameter]] += squares(survey, piece, one)
    check_finite(total.sum(1))
    return total.sqrt_()


def outputs(survey: Survey, head: nn.Module, data: TensorSet, chunk: int) -> tuple[torch.Tensor, ...]:
    """Return loss (N, 1), inputs of ``head`` (N, width) and logits (N, classes)."""
    seen: list[torch.Tensor] = []
    handle = head.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    found = []
    try:
        for low in range(0, len(data), chunk):
            seen.clear()
            x, y = survey.points(data.x[low : low + chunk], data.y[low : low + chunk])
            with torch.no_grad():
                logits = answer(survey.model, x)
            if len(seen) != 1 or seen[0].shape[:-1] != y.shape:
                raise BadInput(
                    "model: its last linear layer is not run once with one vector a point; use an architecture that "
                    "ends in a linear layer"
                )
            found.append((F.cross_entropy(logits, y, reduction="none")[:, None], seen[0].clone(), logits))
    finally:
        handle.remove()
    return tuple(torch.cat(each) for each in zip(*found, strict=True))
