"""The steps of any training: between two of them a keeper may keep it, and it goes on from there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from audits.training.keeper import Keeper, Snapshot, joined
from audits.training.optimizer_state import (
    optimizer_snapshot,
    resume_optimizer,
    resume_schedule,
    schedule_snapshot,
)

if TYPE_CHECKING:
    import torch
    from torch import nn

Batch = TypeVar("Batch")


def global_generators(devices: Iterable[torch.device]) -> dict[str, torch.Generator]:
    """Return the generators that Dropout reads: that of the CPU and those of the CUDA ``devices``."""
    import torch

    return {"cpu": torch.default_generator} | {
        f"cuda{device.index}": torch.cuda.default_generators[device.index] for device in devices
    }


@dataclass
class Steps:
    """Goes through the epochs of a training and the batches of each, from where ``keeper`` has it.

    All that steps change belongs here: ``model``, ``optimizer``, ``schedule``, ``generators``, and ``sums``, tensors
    that are zero where an epoch begins and are added to in place. ``order`` draws nothing but the batches of an epoch,
    after that has begun: they are drawn again, and those that are done are passed over. What else changes is a side of
    the keeper (``keeper.Beside``).
    """

    keeper: Keeper
    model: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: torch.optim.lr_scheduler.LRScheduler | None
    order: torch.Generator
    generators: Mapping[str, torch.Generator] = field(default_factory=dict)
    sums: Mapping[str, torch.Tensor] = field(default_factory=dict)
    epoch: int = 0
    done: int = 0
    """Steps of the epoch that are taken."""
    passed: int = 0
    """Steps of the epoch that were taken before its process was lost, and are yet to be passed over."""

    def epochs(self, count: int) -> Iterator[int]:
        """Yield the number of each epoch that is not done, from 0 to ``count`` - 1."""
        if found := self.keeper.last():
            self.resume(found, count)
        for epoch in range(self.epoch, count):
            self.begun = self.order.get_state()
            yield epoch
            self.epoch, self.done = epoch + 1, 0
            for total in self.sums.values():
                total.zero_()
        self.keeper.finish(self.final)

    def batches(self, drawn: Iterable[Batch]) -> Iterator[Batch]:
        """Yield those of the batches ``drawn`` of an epoch that are not done; behind each is a step."""
        yield from self.each_step(self.left(drawn))

    def left(self, drawn: Iterable[Batch]) -> Iterator[Batch]:
        """Yield those of the batches ``drawn`` of an epoch that are not done."""
        for batch in drawn:
            if self.passed:
                self.passed -= 1
            else:
                yield batch

    def each_step(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Yield ``batches``; behind each is a step."""
        for batch in batches:
            yield batch
            self.done += 1
            if self.keeper.due():
                self.keeper.save(self.snapshot())

    def snapshot(self) -> Snapshot:
        """Return the training as it stands between two steps; the tensors are its own."""
        generators = {name: each.get_state() for name, each in self.generators.items()}
        parts = [
            ("position", Snapshot(notes={"epoch": self.epoch, "done": self.done})),
            ("model", Snapshot(self.model.state_dict())),
            ("optimizer", optimizer_snapshot(self.optimizer)),
            ("generators", Snapshot(generators)),
            ("order", Snapshot({"begun": self.begun})),
            ("sums", Snapshot(self.sums)),
        ]
        if self.schedule is not None:
            parts.append(("schedule", schedule_snapshot(self.schedule)))
        return joined(parts)

    def final(self) -> Snapshot:
        """Return the training at its end, where only the model is left."""
        position = Snapshot(notes={"epoch": self.epoch, "done": 0})
        return joined([("position", position), ("model", Snapshot(self.model.state_dict()))])

    def resume(self, found: Snapshot, count: int) -> None:
        """Go back to ``found``, a snapshot of this very training, which has ``count`` epochs."""
        position = found.part("position").notes
        self.model.load_state_dict(dict(found.part("model").tensors))
        self.epoch, self.done = position["epoch"], position["done"]
        self.passed = self.done
        if self.epoch == count:
            return
        resume_optimizer(self.optimizer, found.part("optimizer"))
        if self.schedule is not None:
            resume_schedule(self.schedule, found.part("schedule"))
        self.order.set_state(found.tensors["order/begun"])
        for name, state in found.part("generators").tensors.items():
            self.generators[name].set_state(state)
        for name, total in found.part("sums").tensors.items():
            self.sums[name].copy_(total)
