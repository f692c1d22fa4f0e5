"""Copies of a model whose gradients are taken point by point."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn


def contiguous(model: nn.Module) -> nn.Module:
    """Return a copy of ``model`` whose weights lie row by row in memory.

    Opacus reads activations so: channels-last ones give wrong gradients of single points, silently. ``Module.to`` is
    not enough: a kernel of one input channel counts as both and would keep its strides.
    """
    found = copy.deepcopy(model)
    for weight in found.parameters():
        weight.data = weight.data.clone(memory_format=torch.contiguous_format)
    return found


def computing_in(model: nn.Module, dtype: torch.dtype) -> nn.Module:
    """Return ``model`` with floats in ``dtype`` and complex buffers in numbers of that precision, changed in place.

    Torch's ``to`` would drop the imaginary parts of the latter.
    """

    def converted(values: torch.Tensor) -> torch.Tensor:
        if values.is_complex():
            return values.to(dtype.to_complex())
        return values.to(dtype) if values.is_floating_point() else values

    model._apply(converted)
    return model


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the advice that Opacus and torch's hooks give to their own users off the terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
