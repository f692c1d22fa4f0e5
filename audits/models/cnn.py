"""Small convolutional network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from torch import nn

from audits.errors import BadInput
from audits.models.base import MODELS, Architecture, image_shape

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}
"""None of them ever falls."""


@MODELS.register("cnn")
@dataclass(frozen=True)
class CNN(Architecture):
    """Per entry of ``channels``: 3×3 convolution, 2×2 max pooling, ``activation``; then a hidden layer and the output.

    Pooling before an activation that never falls gives what pooling after it gives, for a quarter of its work.
    """

    recordable: ClassVar[bool] = True

    channels: tuple[int, ...] = (16, 32)
    hidden: int = 64
    dropout: float = 0.0
    activation: str = "relu"

    def __post_init__(self) -> None:
        if not self.channels or any(width < 1 for width in self.channels):
            raise BadInput(f"model.settings.channels is {list(self.channels)}; give one width of 1 or more per block")
        if self.hidden < 1:
            raise BadInput(f"model.settings.hidden is {self.hidden}; it must be 1 or more")
        if not 0 <= self.dropout < 1:
            raise BadInput(f"model.settings.dropout is {self.dropout}; allowed: 0 up to, but not including, 1")
        if self.activation not in ACTIVATIONS:
            raise BadInput(f"model.settings.activation is {self.activation!r}; allowed: {', '.join(ACTIVATIONS)}")

    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        width, height, breadth = image_shape(self.name, shape)
        active, parts = ACTIVATIONS[self.activation], list[nn.Module]()
        for channels in self.channels:
            if min(height, breadth) < 2:
                raise BadInput(
                    f"model.settings.channels: {len(self.channels)} poolings are too many for {shape} images"
                )
            parts += [nn.Conv2d(width, channels, 3, padding=1), nn.MaxPool2d(2), active()]
            width, height, breadth = channels, height // 2, breadth // 2
        parts += [nn.Flatten(), nn.Linear(width * height * breadth, self.hidden), active()]
        if self.dropout:
            parts.append(nn.Dropout(self.dropout))
        return nn.Sequential(*parts, nn.Linear(self.hidden, classes))
