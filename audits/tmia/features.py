"""Features of points: what the reference models hand to their last linear layer.

φ(x) is the concatenation over n_ref reference models of the input of the last linear layer, each block divided by its
L2 norm and by √n_ref (TMIA, Journal on Communications 42(10), 2021, section on anomaly detection; the scaling is
reconstructed). So squared distances are means over reference models and, before projection, distances lie in [0, 2].

Deviation: a layer wider than ``most`` is projected by a fixed Gaussian map with entries of variance 1/``most``, one of
its own for each reference model. Squared distances keep their expectation, with a relative standard deviation of
√(2/``most``) a block (.09 for 256), which the sum over independent maps divides by up to √n_ref.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from audits.data.tensors import as_float
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed, torch_generator

MOST = 256


@dataclass(frozen=True)
class Features:
    """φ of the points ``x`` (N, ...), one block for each of ``models``; may be read as often as wanted.

    ``x``: floats, or uint8 images, on the device of the models; ``models``: a sequence, which may load a model when it
    is asked for one; ``seed`` of the Gaussian maps; ``most`` columns of a block; ``chunk`` points through a model at
    once. Iterating yields blocks (N, min(width, ``most``)) float32 and holds one model and one block at a time:
    4·N·``most`` bytes, 61 MB for 60 000 points, and as much again while it is put together; the unprojected layer
    stands for ``chunk`` points only. Reading costs one pass of all points through all models every time.
    """

    models: Sequence[nn.Module]
    x: torch.Tensor
    seed: int
    most: int = MOST
    chunk: int = 1024

    def __post_init__(self) -> None:
        if len(self.models) == 0:
            raise BadInput("no reference model is given; features need 1 or more")
        for field in ("most", "chunk"):
            if getattr(self, field) < 1:
                raise BadInput(f"{field} is {getattr(self, field)}; it must be 1 or more")

    def __len__(self) -> int:
        return len(self.models)

    def __iter__(self) -> Iterator[torch.Tensor]:
        for index in range(len(self)):
            yield self.block(index)

    def block(self, index: int) -> torch.Tensor:
        """Return the block (N, min(width, most)) of reference model ``index``; ``FloatingPointError`` if not finite."""
        model = self.models[index]
        width, way = last_linear(model).in_features, None
        if width > self.most:
            way = gaussian_map(width, self.most, derive_seed(self.seed, Purpose.PROJECTION, index)).to(self.x.device)
        found = unit_penultimate(model, self.x, way, self.chunk) / math.sqrt(len(self))
        if not bool(torch.isfinite(found).all()):
            raise FloatingPointError(f"features of reference model {index} are not finite; it may have diverged")
        return found

    def whole(self) -> torch.Tensor:
        """Return all blocks side by side (N, D), D ≤ n_ref·most: for few points or few models (4·N·D bytes)."""
        return torch.cat(list(self), dim=1)


@torch.no_grad()
def unit_penultimate(model: nn.Module, x: torch.Tensor, way: torch.Tensor | None, chunk: int = 1024) -> torch.Tensor:
    """Return the inputs (N, width) float32 of the last linear layer at ``x`` (N, ...), each of L2 norm 1.

    With ``way`` (width, out) they are multiplied by it, chunk by chunk: (N, out). A row of zeros stays zero. The model
    answers in eval mode and is left in the modes that it had. Raises ``BadInput`` for a model whose last linear layer
    is not given one row a point.
    """
    seen: list[torch.Tensor] = []
    handle = last_linear(model).register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    parts = []
    try:
        for part in x.split(chunk):
            seen.clear()
            model(as_float(part))
            if len(seen) != 1 or seen[0].shape[:-1] != part.shape[:1]:
                raise BadInput(
                    "the last linear layer of a reference model is not run once with one row a point; "
                    "use an architecture that ends in a linear layer"
                )
            unit = nn.functional.normalize(seen[0].float(), dim=1)
            parts.append(unit if way is None else unit @ way)
    finally:
        handle.remove()
        for module, training in modes:
            module.training = training
    return torch.cat(parts)


def last_linear(model: nn.Module) -> nn.Linear:
    """Return the linear layer that was registered last: the output layer of every architecture in ``audits.models``."""
    found = [module for module in model.modules() if isinstance(module, nn.Linear)]
    if not found:
        raise BadInput("a reference model has no linear layer; use an architecture that ends in one")
    return found[-1]


def gaussian_map(width: int, out: int, seed: int) -> torch.Tensor:
    """Return (width, out) float32 with independent entries N(0, 1/out), drawn on the CPU; equal seeds, equal maps."""
    return torch.randn(width, out, generator=torch_generator(seed)) / math.sqrt(out)
