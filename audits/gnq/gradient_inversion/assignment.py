"""The assignment of a batch's reconstructions to its images: a mean gradient does not tell their order."""

from __future__ import annotations

import torch

from audits.gnq.inversion import mse


def in_order(found: torch.Tensor, images: torch.Tensor) -> torch.Tensor:
    """Return reconstructions ``found`` (P, B, C, H, W) in the order of ``images`` (P, B, C, H, W) that fits best.

    The assignment within each batch that has the least sum of mean squared errors. It reads the images, so that noise
    comes out closer to them than chance: a control has to be ordered by the same rule.
    """
    from scipy.optimize import linear_sum_assignment

    errors = mse(found[:, :, None], images[:, None])
    order = [torch.from_numpy(linear_sum_assignment(each.T)[1]) for each in errors]
    return torch.stack([batch[places.to(found.device)] for batch, places in zip(found, order, strict=True)])
