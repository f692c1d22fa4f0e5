"""Embeddings: linear layers on one-hot vectors, of which only the place of the one is kept."""

from __future__ import annotations

import torch
from torch import nn

from audits.gradients.layers.base import LAYERS, Call, OuterRule, key_of


class EmbeddingRule(OuterRule):
    """a_t is the token at position t, (n, 1, positions) integers; two tokens have the inner product 1 or 0."""

    def factors(self, module: nn.Module, call: Call) -> tuple[torch.Tensor, torch.Tensor]:
        """Return tokens as a and gradients as b of one call; padding has no gradient."""
        assert isinstance(module, nn.Embedding)
        n = len(call.input)
        tokens = call.input.reshape(n, 1, -1)
        b = call.grad.reshape(n, 1, -1, call.grad.shape[-1])
        if module.padding_idx is not None:
            b = b * (tokens != module.padding_idx)[..., None]
        return tokens, b

    def reads(self, module: nn.Module, call: Call, points: int) -> bool:
        """A point may be a single token."""
        return call.input.ndim >= 1 and call.grad.ndim >= 2 and len(call.input) == len(call.grad) == points

    def gradient(self, module: nn.Module, a: torch.Tensor, b: torch.Tensor, low: int, high: int) -> torch.Tensor:
        """Return each point's gradient of the rows of tokens ``low`` to ``high``, flat."""
        n, width, kept = len(a), b.shape[-1], (a >= low) & (a < high)
        place = (a - low).clamp(0, high - low - 1) + (high - low) * torch.arange(n, device=a.device)[:, None, None]
        found = b.new_zeros(n * (high - low), width)
        found.index_add_(0, place.flatten(), (b * kept[..., None]).reshape(-1, width))
        return found.reshape(n, -1)

    def ghost_numbers(self, module: nn.Module, a: torch.Tensor, b: torch.Tensor) -> int:
        """Return 1 + outputs: a token is one number."""
        return 1 + int(b.shape[3])

    def inner(self, a: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        return (a.reshape(1, -1, 1) == other.reshape(1, 1, -1)).double()

    def inner_of_each(self, a: torch.Tensor) -> torch.Tensor:
        return (a[..., :, None] == a[..., None, :]).double()


LAYERS.register(key_of(nn.Embedding))(EmbeddingRule())
