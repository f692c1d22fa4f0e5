"""Models that code which knows nothing of orch has trained: a plain loop, saved as torch.save writes a state dict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import nn


def trained_elsewhere(
    net: nn.Module, x: torch.Tensor, y: torch.Tensor, *, steps: int, seed: int, rate: float = 1e-2, batch: int = 16
) -> nn.Module:
    """Return ``net`` after ``steps`` of Adam on ``x`` (n, …), ``y`` (n,), in eval mode."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(net.parameters(), rate)
    for _ in range(steps):
        rows = torch.randint(len(x), (batch,), generator=generator)
        optimiser.zero_grad()
        nn.functional.cross_entropy(net(x[rows]), y[rows]).backward()
        optimiser.step()
    return net.eval()


def saved(net: nn.Module, file: Path, names: Any) -> Path:
    """Save the weights of ``net`` under other ``names``, in their order, and return the file."""
    torch.save(dict(zip(names, net.state_dict().values(), strict=True)), file)
    return file
