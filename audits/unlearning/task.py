"""One model that should forget, and all that an unlearning method may read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from audits.data.tensors import TensorSet, devices_of
from audits.seeds import Purpose, derive_seed, torch_generator
from audits.training.recipe import Recipe

if TYPE_CHECKING:
    import torch
    from torch import nn


@dataclass(frozen=True)
class Task:
    """One model that should forget: everything that a method may read.

    ``student`` is a private copy of ``original``, trainable and in train mode, the only thing that a method may
    change. ``recipe`` is the target's own, ``build(seed)`` returns a fresh model of its architecture on the CPU; both
    are None when the caller did not give them. Both sets stand on one device, that of the models.
    """

    student: nn.Module
    original: nn.Module
    forget: TensorSet
    retain: TensorSet
    seed: int
    recipe: Recipe | None = None
    build: Callable[[int], nn.Module] | None = None

    def generator(self, purpose: str) -> torch.Generator:
        """Return a CPU generator for one purpose (``order`` of the batches, random ``labels``)."""
        return torch_generator(derive_seed(self.seed, purpose))

    @contextmanager
    def dropout(self) -> Iterator[None]:
        """Seed the global generators that Dropout reads, and give them back as they were."""
        import torch

        devices = devices_of(self.retain)
        seed = derive_seed(self.seed, Purpose.DROPOUT)
        with torch.random.fork_rng(devices=devices):
            torch.default_generator.manual_seed(seed)  # torch.manual_seed would seed every GPU's generator too
            for device in devices:
                torch.cuda.default_generators[device.index].manual_seed(seed)
            yield
