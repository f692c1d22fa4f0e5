"""Architectures by name: a frozen dataclass of settings that builds a module from a seed."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from audits.errors import BadInput
from audits.registry import Registry

if TYPE_CHECKING:
    from torch import nn

MODELS: Registry[type[Architecture]] = Registry(
    "model", "audits.models", own="audits.models.own:adapted", group="orch.models"
)


@dataclass(frozen=True)
class Architecture(ABC):
    """Settings of one architecture; a model takes inputs in the data's own range and returns logits (N, classes)."""

    __pydantic_config__: ClassVar[dict[str, object]] = {"extra": "forbid", "strict": True}

    name: ClassVar[str]
    recordable: ClassVar[bool] = False
    """Whether a step of the module asks a GPU for the same each time and waits for nothing, so that it can be recorded.

    Where that is not true the training fails, or learns with what was drawn for the first batch.
    """

    def build(self, shape: tuple[int, ...], classes: int, seed: int) -> nn.Module:
        """Return a freshly initialised module for points of ``shape``; equal seeds give equal weights.

        Weights of convolutions lie channels-last in memory, which is faster (``laid_out``); their shape stays
        (out, in, H, W).
        """
        import torch

        if classes < 2:
            raise BadInput(f"model.name: {self.name} needs at least 2 classes, the data has {classes}")
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed every GPU's generator too
            model = laid_out(self.layers(shape, classes))
        model.recordable = self.recordable  # type: ignore[assignment]  # read by audits.training.backward
        return model

    @abstractmethod
    def layers(self, shape: tuple[int, ...], classes: int) -> nn.Module:
        """Return the module; random initialisation reads torch's generator, which ``build`` has seeded."""


@contextmanager
def without_numbers() -> Iterator[None]:
    """Make models on the device "meta": of shapes alone, so that a wide one costs as little as a small one.

    Code that loads weights of its own copies them to nowhere, of which torch would warn once a tensor.
    """
    import torch

    with torch.device("meta"), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="for .*: copying from a non-meta parameter")
        yield


def laid_out(model: nn.Module) -> nn.Module:
    """Return ``model`` with the kernels of its convolutions channels-last in memory, unless torch cannot do that.

    Channels-last, torch's GroupNorm gives wrong gradients of its bias on 1×1 images (torch 2.15, CPU), and the weight
    gradient of a 1×1 convolution with a stride writes outside its memory for fewer than 8 input channels (torch 2.14 on
    CPUs without AVX-512).
    """
    import torch
    from torch import nn

    if any(isinstance(module, nn.GroupNorm) or narrow_shortcut(module) for module in model.modules()):
        return model
    return model.to(memory_format=torch.channels_last)


def narrow_shortcut(module: nn.Module) -> bool:
    """Return whether ``module`` is a 1×1 convolution with a stride and fewer than 8 input channels."""
    from torch import nn

    if not isinstance(module, nn.Conv2d) or module.in_channels // module.groups >= 8:
        return False
    return set(module.kernel_size) == {1} and max(module.stride) > 1


def make_model(name: str, settings: dict[str, Any]) -> Architecture:
    """Return the architecture ``name`` with ``settings`` (its dataclass fields; lists become tuples)."""
    frozen = {field: tuple(value) if isinstance(value, list) else value for field, value in settings.items()}
    return MODELS[name](**frozen)


def image_shape(name: str, shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return ``shape`` as (channels, height, width) or refuse data that are not images."""
    if len(shape) != 3:
        raise BadInput(
            f"model.name: {name} reads images (channels, height, width); the data has shape {shape}; use mlp"
        )
    return shape[0], shape[1], shape[2]


def check_choice(setting: str, value: str, allowed: tuple[str, ...]) -> None:
    """Refuse a word that ``model.settings.<setting>`` does not know."""
    if value not in allowed:
        raise BadInput(f"model.settings.{setting} is {value!r}; allowed: {', '.join(allowed)}")
