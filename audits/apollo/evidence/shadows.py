"""The shadows of a search: who is asked about which candidate, and the form in which they answer fastest."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_weights

from audits.memory import Forms
from audits.models.stacked import Stacked, stacked

Stacks = tuple[Stacked | None, Stacked]
"""The unlearned and the original shadows, each set as one model; offline there are no unlearned ones."""


@dataclass(frozen=True)
class Asked:
    """Who is asked about the k candidates of a chunk: ``inside`` and ``outside`` (m, k) bool, as in ``Shadows``.

    ``rows_in``, ``rows_out``: for each shadow the indices of the candidates that its unlearned and its original model
    is asked about; () where the shadows are stacked, and all are asked about all.
    """

    inside: torch.Tensor
    outside: torch.Tensor
    rows_in: tuple[torch.Tensor, ...]
    rows_out: tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Shadows:
    """The shadows of one group as the search sees them.

    ``inside``: (m, K) bool, shadow i trained on candidate k and unlearned it; ``outside``: (m, K), it never saw it
    (None: all that are not inside). ``unlearned[i]`` is asked about the points inside, ``original[i]`` about those
    outside, nobody about the rest. Offline, nothing is inside and ``unlearned`` is not read. ``shape`` is the shape of
    one point. ``stacks``: the unlearned and the original models, each set as one (``forms``), on a GPU.
    """

    original: Sequence[nn.Module]
    unlearned: Sequence[nn.Module]
    inside: torch.Tensor
    shape: tuple[int, ...]
    outside: torch.Tensor | None = None
    stacks: Stacks | None = None

    @property
    def never(self) -> torch.Tensor:
        """(m, K) bool: shadow i never saw candidate k."""
        return ~self.inside if self.outside is None else self.outside

    def models_for(self, rows: torch.Tensor) -> Asked:
        """Return who is asked about the candidates ``rows``.

        Indices are worked out on the host: a GPU would let it wait for each of them, in every step.
        """
        inside, outside = self.inside[:, rows], self.never[:, rows]
        if self.stacks is not None:
            return Asked(inside, outside, (), ())
        return Asked(inside, outside, rows_of(inside), rows_of(outside))

    def logits(self, i: int, inside: bool, points: torch.Tensor) -> torch.Tensor:
        """Return shadow i's logits (N·Q, classes) for flattened points (N, Q, D)."""
        model = self.unlearned[i] if inside else self.original[i]
        output: torch.Tensor = model(points.reshape(-1, *self.shape))
        return output

    def folded(self) -> Shadows:
        """Return the same shadows with BatchNorm folded away; see ``folded``. Same answers up to rounding."""
        return replace(
            self, original=[folded(model) for model in self.original], unlearned=[folded(one) for one in self.unlearned]
        )

    def forms(self, sample: torch.Tensor) -> Forms[Shadows]:
        """Return the same shadows as two stacked models where that is better, and one by one where memory is scarce.

        ``sample`` (1, D) is a point.
        """
        example = sample.reshape(-1, *self.shape)
        original = stacked(self.original, example)
        unlearned = stacked(self.unlearned, example) if self.unlearned else None
        if original is None or (self.unlearned and unlearned is None):
            return Forms(self)
        return Forms(replace(self, stacks=(unlearned, original)), self)


def rows_of(side: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Return, for each shadow, the columns of ``side`` (m, k) that hold for it."""
    found = [own.nonzero().squeeze(1) for own in side.cpu()]
    together = torch.cat(found).to(side.device)
    return tuple(torch.split(together, [len(own) for own in found]))


def folded(model: nn.Module) -> nn.Module:
    """Return a model that answers as ``model`` does in eval mode, and faster; ``model`` itself stays as it is.

    Where a convolution and its BatchNorm follow each other in a plain ``nn.Sequential`` both become one convolution,
    the only weights that are copied; they lie channels-last in memory. A model without such a pair is returned as it
    is. A module that is used twice, trains, or keeps no running statistics is left alone.
    """
    if not any(isinstance(module, nn.BatchNorm2d) for module in model.modules()):
        return model
    shared = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    found = copy.deepcopy(model, shared)
    uses = Counter(id(module) for _, module in found.named_modules(remove_duplicate=False))
    for parent in list(found.modules()):
        if type(parent) is nn.Sequential:
            for place in range(len(parent) - 1):
                first, second = parent[place], parent[place + 1]
                if uses[id(first)] == uses[id(second)] == 1 and foldable(first, second):
                    parent[place], parent[place + 1] = one_convolution(first, second), nn.Identity()
    return found


def foldable(first: nn.Module, second: nn.Module) -> bool:
    """Return whether ``second`` is a BatchNorm with fixed statistics behind the convolution ``first``."""
    fixed = type(second) is nn.BatchNorm2d and not second.training and second.running_mean is not None
    return fixed and type(first) is nn.Conv2d and not first.training


def one_convolution(convolution: nn.Module, norm: nn.Module) -> nn.Module:
    """Return the convolution that does the work of both, frozen."""
    assert isinstance(convolution, nn.Conv2d) and isinstance(norm, nn.BatchNorm2d)
    assert norm.running_mean is not None and norm.running_var is not None
    weight, bias = fuse_conv_bn_weights(
        convolution.weight.detach(),
        None if convolution.bias is None else convolution.bias.detach(),
        norm.running_mean,
        norm.running_var,
        norm.eps,
        norm.weight,
        norm.bias,
    )
    convolution.weight = nn.Parameter(weight.detach().to(memory_format=torch.channels_last), requires_grad=False)
    convolution.bias = nn.Parameter(bias.detach(), requires_grad=False)
    return convolution
