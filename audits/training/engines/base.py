"""The interface of an engine of DP-SGD, and the pieces that engines share."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from audits.data.tensors import TensorSet
from audits.errors import BadInput
from audits.extras import command
from audits.gradients.model_copies import quiet
from audits.registry import Registry
from audits.training.recipe import Recipe

REMEDY = "use resnet18 or vgg16 with model.settings.norm: group, mlp or cnn"


@dataclass(frozen=True)
class Noise:
    """The Gaussian mechanism of a step: ``sigma`` · ``bound`` on every number of a sum over ``expected`` points."""

    sigma: float
    bound: float
    expected: float
    generator: torch.Generator

    def mean(self, total: torch.Tensor) -> torch.Tensor:
        """Return the noisy mean gradient, given the sum of the bounded ones of one parameter."""
        if self.sigma > 0:
            # As Opacus draws it, parameter by parameter, so that both engines have the same noise.
            scale, at, kind = self.sigma * self.bound, total.device, total.dtype
            total = total + torch.normal(0.0, scale, total.shape, generator=self.generator, device=at, dtype=kind)
        return total / self.expected


class Engine(ABC):
    """Takes noisy steps on a copy of a model, ``student``, with the optimiser ``inner``."""

    name: ClassVar[str]

    student: nn.Module
    inner: torch.optim.Optimizer

    @abstractmethod
    def __init__(self, model: nn.Module, data: TensorSet, recipe: Recipe, noise: Noise) -> None:
        """Lay ``model`` out for training on ``data``; BadInput for models that the engine cannot train."""

    @classmethod
    @abstractmethod
    def check(cls, model: nn.Module) -> None:
        """Refuse a model whose points influence each other's gradients, or whose layers the engine does not know."""

    @abstractmethod
    def step(self, rows: torch.Tensor, shifts: torch.Generator) -> torch.Tensor:
        """Take one noisy step on ``rows`` and return their summed loss, a float64 scalar on the device of the data.

        ``shifts`` decides the augmentation.
        """

    @abstractmethod
    def weights(self) -> dict[str, torch.Tensor]:
        """Return the state dict of the trained model."""


ENGINES: Registry[type[Engine]] = Registry("engine of private training", "audits.training.engines")


def check_norms(model: nn.Module) -> None:
    """Refuse BatchNorm, which mixes points."""
    for name, layer in model.named_modules():
        if isinstance(layer, _BatchNorm):
            raise BadInput(
                f"recipe: private training needs each point's own gradient, but layer {name} is a "
                f"{type(layer).__name__}, which mixes the points of a batch; use model.settings.norm: group "
                "(resnet18, vgg16), batch_norm: false (mlp), or cnn"
            )


def opacus(part: str) -> Any:
    """Return the module ``opacus.<part>``, imported when it is first needed."""
    try:
        with quiet():
            return importlib.import_module(f"opacus.{part}")
    except ImportError as error:
        raise BadInput(f"recipe: private training needs Opacus ({error}); {command('opacus')}") from error
