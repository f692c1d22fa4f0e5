"""One model that should forget, and all that an unlearning method may read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from audits.data.tensors import TensorSet, devices_of
from audits.seeds import Purpose, derive_seed, torch_generator
from audits.training.keeper import NEVER, Beside, Keeper, Resumable
from audits.training.recipe import Recipe
from audits.training.steps import Steps, global_generators
from audits.training.team import ALONE, Team

if TYPE_CHECKING:
    import torch
    from torch import nn


@dataclass(frozen=True)
class Task:
    """One model that should forget: everything that a method may read.

    ``student`` is a private copy of ``original``, trainable and in train mode, the only thing that a method may
    change. ``recipe`` is the target's own, ``build(seed)`` returns a fresh model of its architecture on the CPU; both
    are None when the caller did not give them. Both sets stand on one device, that of the models. ``keeper`` is handed
    to ``fit``, or to the ``Steps`` of a method with a loop of its own (``steps``); so is ``team``, or its share of each
    batch (``batches``) and its forward pass (``student.student_forward``) are taken.
    """

    student: nn.Module
    original: nn.Module
    forget: TensorSet
    retain: TensorSet
    seed: int
    recipe: Recipe | None = None
    build: Callable[[int], nn.Module] | None = None
    keeper: Keeper = NEVER
    team: Team = ALONE

    def generator(self, purpose: str) -> torch.Generator:
        """Return a CPU generator for one purpose (``order`` of the batches, random ``labels``)."""
        return torch_generator(derive_seed(self.seed, purpose))

    def beside(self, name: str, side: Resumable) -> Task:
        """Return the task with ``side`` kept below ``name`` wherever the training of the student is."""
        return replace(self, keeper=Beside(self.keeper, name, side))

    def steps(
        self,
        optimizer: torch.optim.Optimizer,
        schedule: torch.optim.lr_scheduler.LRScheduler | None,
        order: torch.Generator,
    ) -> Steps:
        """Return the steps of a loop over the student, to go through within ``dropout``; arguments as of ``Steps``."""
        generators = global_generators(devices_of(self.retain))
        return Steps(self.keeper, self.student, optimizer, schedule, order, generators)

    def batches(self, data: TensorSet, parts: Sequence[torch.Tensor]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield the inputs (as floats) of this worker's share of each part's rows of ``data``, and all their labels."""
        return data.batches(parts, share=self.team.share)

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
