"""Observers of a model at checkpoints while it trains, and the points of each batch among themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
import torch
from torch import nn

from audits.arrays import Ids
from audits.data.tensors import TensorSet
from audits.training.keeper import Snapshot, joined
from audits.uniqueness.bits import log_uniqueness
from audits.uniqueness.scores import Scores

Ask = Callable[[nn.Module, TensorSet], Scores]
State = dict[str, torch.Tensor]
Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Watched(TensorSet):
    """A training set that tells which rows are asked for, before it gives them out."""

    before: Callable[[torch.Tensor], None]

    def note_rows(self, rows: torch.Tensor | slice) -> None:
        """Tell the rows."""
        self.before(torch.arange(len(self))[rows if isinstance(rows, slice) else rows.cpu()])


class Batches:
    """Sums over steps of what the points of each batch are among themselves."""

    def __init__(self, data: TensorSet, modes: tuple[str, ...]) -> None:
        self.log = {mode: np.zeros(len(data)) for mode in modes}
        self.total = {mode: np.zeros(len(data)) for mode in modes}
        self.steps = np.zeros(len(data), np.int64)
        self.doubts = 0

    def add(self, rows: Ids, scores: Scores) -> None:
        """Take in the scores of the points ``rows`` of one batch, each of which occurs once."""
        for mode, gnq in scores.gnq.items():
            self.log[mode][rows] += log_uniqueness(gnq[None])
            self.total[mode][rows] += gnq
        self.steps[rows] += 1
        self.doubts += bool(scores.doubt)

    def snapshot(self) -> Snapshot:
        """Return the sums up to now."""
        own = Snapshot({"steps": torch.from_numpy(self.steps)}, {"doubts": self.doubts})
        sums = [("log", tensors_of(self.log)), ("total", tensors_of(self.total))]
        return joined([("own", own), *((name, Snapshot(tensors)) for name, tensors in sums)])

    def resume(self, snapshot: Snapshot) -> None:
        """Go back to the sums of ``snapshot``."""
        self.log, self.total = (arrays_of(snapshot.part(name).tensors) for name in ("log", "total"))
        own = snapshot.part("own")
        self.steps, self.doubts = own.tensors["steps"].numpy(), own.notes["doubts"]


class Checkpoints(ABC, Generic[Seen]):
    """Sees ``model`` through ``look`` before every ``every``-th step, and whenever it is told to."""

    def __init__(self, model: nn.Module, every: int, look: Callable[[nn.Module], Seen]) -> None:
        self.model, self.every, self.look = model, every, look
        self.taken = 0
        self.steps: list[int] = []
        self.seen: list[Seen] = []

    def before_step(self, rows: torch.Tensor) -> None:
        """Observe the model before a step on ``rows`` of the training set."""
        if self.taken % self.every == 0:
            self.checkpoint()
        self.taken += 1

    def checkpoint(self) -> None:
        """Observe the model at a checkpoint."""
        self.seen.append(self.look(self.model))
        self.steps.append(self.taken)

    def snapshot(self) -> Snapshot:
        """Return all that was seen, and after how many steps."""
        own = Snapshot(notes={"taken": self.taken, "steps": list(self.steps)})
        looks = zip(self.steps, self.seen, strict=True)
        return joined([("own", own), *((str(step), self.packed(seen)) for step, seen in looks)])

    def resume(self, snapshot: Snapshot) -> None:
        """Go back to what had been seen at ``snapshot``."""
        notes = snapshot.part("own").notes
        self.taken, self.steps = notes["taken"], list(notes["steps"])
        self.seen = [self.unpacked(snapshot.part(str(step))) for step in self.steps]

    @abstractmethod
    def packed(self, seen: Seen) -> Snapshot:
        """Return what was seen at one checkpoint as a snapshot."""

    @abstractmethod
    def unpacked(self, snapshot: Snapshot) -> Seen:
        """Return what ``packed`` has packed."""


class Weights(Checkpoints[State]):
    """Keeps the weights at each checkpoint."""

    def packed(self, seen: State) -> Snapshot:
        return Snapshot(seen)

    def unpacked(self, snapshot: Snapshot) -> State:
        return dict(snapshot.tensors)


class Watch(Checkpoints[Scores]):
    """Sees ``model`` at checkpoints on ``points``, and with ``among`` at each step on the batch of ``data``."""

    def __init__(
        self, model: nn.Module, data: TensorSet, points: TensorSet, every: int, ask: Ask, among: Batches | None
    ) -> None:
        super().__init__(model, every, lambda seen: ask(seen, points))
        self.data, self.ask, self.among = data, ask, among

    def before_step(self, rows: torch.Tensor) -> None:
        """Observe the model before a step, and the points of its batch among themselves."""
        super().before_step(rows)
        if self.among is not None:
            batch = TensorSet(self.data.x[rows], self.data.y[rows])
            self.among.add(rows.cpu().numpy(), self.ask(self.model, batch))

    def packed(self, seen: Scores) -> Snapshot:
        own = Snapshot(tensors_of({"loss": seen.loss, "squared_norm": seen.squared_norm}), {"doubt": seen.doubt})
        return joined([("own", own), ("gnq", Snapshot(tensors_of(seen.gnq)))])

    def unpacked(self, snapshot: Snapshot) -> Scores:
        own, gnq = snapshot.part("own"), arrays_of(snapshot.part("gnq").tensors)
        return Scores(**arrays_of(own.tensors), gnq=gnq, doubt=own.notes["doubt"])

    def snapshot(self) -> Snapshot:
        """Return all that was seen, at checkpoints and in batches."""
        batches = [] if self.among is None else [("batches", self.among.snapshot())]
        return joined([("checkpoints", super().snapshot()), *batches])

    def resume(self, snapshot: Snapshot) -> None:
        """Go back to what had been seen at ``snapshot``."""
        super().resume(snapshot.part("checkpoints"))
        if self.among is not None:
            self.among.resume(snapshot.part("batches"))


def tensors_of(arrays: dict[str, Any]) -> dict[str, torch.Tensor]:
    """Return named arrays as tensors on the same memory."""
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def arrays_of(tensors: Any) -> dict[str, Any]:
    """Return named tensors on the CPU as arrays on the same memory."""
    return {name: tensor.numpy() for name, tensor in tensors.items()}
