"""Multi-layer perceptron."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from audits.errors import BadInput
from audits.models.base import MODELS, Architecture


@MODELS.register("mlp")
@dataclass(frozen=True)
class MLP(Architecture):
    """Flattened input, ``hidden`` layers of Linear + ReLU (BatchNorm behind the ReLU on request), linear output."""

    recordable: ClassVar[bool] = True

    hidden: tuple[int, ...] = (128, 128)
    batch_norm: bool = False
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if any(width < 1 for width in self.hidden):
            raise BadInput(f"model.settings.hidden is {list(self.hidden)}; every width must be 1 or more")
        if not 0 <= self.dropout < 1:
            raise BadInput(f"model.settings.dropout is {self.dropout}; allowed: 0 up to, but not including, 1")

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        width = math.prod(shape)
        parts: list[nn.Module] = [nn.Flatten()]
        for units in self.hidden:
            parts += [nn.Linear(width, units), nn.ReLU()]
            if self.batch_norm:
                parts.append(nn.BatchNorm1d(units))
            if self.dropout:
                parts.append(nn.Dropout(self.dropout))
            width = units
        return nn.Sequential(*parts, nn.Linear(width, classes))
