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


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the advice that Opacus and torch's hooks give to their own users off the terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
