"""The layers of a model in the order of computation: what transfer learning counts when it freezes the first of them.

One rule serves all architectures: containers (``nn.Sequential`` and the model itself) are opened, whatever else holds
weights is a layer, and a normalisation belongs to the layer before it. So the layers are

| architecture | layers, each with its normalisation; the last is the head |
|---|---|
| mlp | linear layers |
| cnn | convolutions, then two linear layers |
| vgg16, vgg19 | 13 or 16 convolutions, then one linear layer (stem "cifar") or three ("imagenet") |
| resnet18, resnet50 | the stem's convolution, 8 or 16 residual blocks, the linear layer |
| inception_v3 | five convolutions, eleven Inception blocks, the linear layer |
| bert | the encoder, the linear layer |
| swin_t | the patches' convolution, attention blocks and, between stages, merges of patches, the linear layer |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from audits.errors import BadInput

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class Layer:
    """One layer: ``modules``, the names of the modules it is made of, the first of which names it.

    ``parameters`` and ``buffers`` are the names of all weights and of all other state that is saved with a model
    (running statistics of BatchNorm, index tables of attention) inside them, in the model's order.
    """

    modules: tuple[str, ...]
    parameters: tuple[str, ...]
    buffers: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the first module."""
        return self.modules[0]

    @property
    def state(self) -> tuple[str, ...]:
        """Names of parameters, then of buffers."""
        return (*self.parameters, *self.buffers)


def layers_of(model: nn.Module) -> tuple[Layer, ...]:
    """Return the layers of ``model`` in order; the last is the linear layer that gives the logits.

    Every parameter is in exactly one layer. BadInput when one is in none, or when the last layer is not linear.
    """
    from torch import nn
    from torch.nn.modules.batchnorm import _BatchNorm

    norms = (_BatchNorm, nn.GroupNorm, nn.LayerNorm)
    groups: list[list[str]] = []
    for name, module in weighted(model):
        if isinstance(module, norms) and groups:
            groups[-1].append(name)
        else:
            groups.append([name])
    layers = tuple(layer_of(model, tuple(names)) for names in groups)
    counted = {name for layer in layers for name in layer.parameters}
    outside = [name for name, _ in model.named_parameters() if name not in counted]
    if outside:
        raise BadInput(f"model: its layers cannot be counted: parameter {outside[0]} belongs to none of them")
    if not layers or not isinstance(model.get_submodule(layers[-1].name), nn.Linear):
        last = layers[-1].name if layers else "none"
        raise BadInput(f"model: its layers cannot be counted: the last one ({last}) is not linear, so it is no head")
    return layers


def weighted(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.Module]]:
    """Yield name and module of whatever holds weights below ``module``, containers opened, in order."""
    from torch import nn

    for name, child in module.named_children():
        if isinstance(child, nn.Sequential):
            yield from weighted(child, f"{prefix}{name}.")
        elif any(True for _ in child.parameters()):
            yield f"{prefix}{name}", child


def layer_of(model: nn.Module, modules: tuple[str, ...]) -> Layer:
    """Return the layer made of ``modules``."""
    parts = [(name, model.get_submodule(name)) for name in modules]
    parameters = [f"{name}.{own}" for name, part in parts for own, _ in part.named_parameters()]
    saved = [f"{name}.{own}" for name, part in parts for own in part.state_dict()]
    buffers = tuple(name for name in saved if name not in set(parameters))
    return Layer(modules, tuple(parameters), buffers)
