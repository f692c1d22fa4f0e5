"""The global generators that users' code may draw from, seeded for a while and given back."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch


@contextmanager
def seeded(seed: int, devices: list[torch.device]) -> Iterator[None]:
    """Seed the global generators of Python, NumPy and torch (CPU and ``devices``), and give them back as they were."""
    import torch

    python, array = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=devices):
            random.seed(seed)
            np.random.seed(seed % 2**32)
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed every GPU's generator too
            for device in devices:
                torch.cuda.default_generators[device.index or 0].manual_seed(seed)
            yield
    finally:
        random.setstate(python)
        np.random.set_state(array)
