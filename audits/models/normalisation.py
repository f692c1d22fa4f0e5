"""The layer between a convolution and its activation: BatchNorm, GroupNorm, or none."""

from __future__ import annotations

import math
from typing import Literal

from torch import nn

Norm = Literal["batch", "group", "none"]
NORMS: tuple[Norm, ...] = ("batch", "group", "none")
MOST_GROUPS = 32  # of Wu and He, "Group Normalization", arXiv 1803.08494


def normalisation(norm: Norm, channels: int) -> nn.Module:
    """Return the layer that ``norm`` names for (N, ``channels``, H, W).

    GroupNorm treats each point alone, which differentially private training needs; it has the largest number of groups
    up to 32 that divides the channels and 32. ``none`` is the identity.
    """
    match norm:
        case "batch":
            return nn.BatchNorm2d(channels)
        case "group":
            return nn.GroupNorm(math.gcd(MOST_GROUPS, channels), channels)
        case "none":
            return nn.Identity()
