"""Seeds: every random choice takes its own, derived from the plan's seed, a purpose and an index."""

from __future__ import annotations

import hashlib

import numpy as np
import torch


def derive_seed(seed: int, purpose: str, *index: int | str) -> int:
    """Return a 63-bit seed that depends on ``seed``, ``purpose`` and ``index`` only."""
    text = "/".join([str(int(seed)), purpose, *(str(part) for part in index)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def torch_generator(seed: int) -> torch.Generator:
    """Return a CPU generator seeded with ``seed`` (random draws are made on the CPU so that devices agree)."""
    return torch.Generator(device="cpu").manual_seed(seed)


def numpy_generator(seed: int) -> np.random.Generator:
    """Return a NumPy generator (PCG64) seeded with ``seed``."""
    return np.random.default_rng(seed)
