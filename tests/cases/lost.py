"""A training that is lost with its process at one of its steps, and goes on in another."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TypeVar

import pytest
from safetensors.torch import load, save

from audits.training.keeper import Keeper, Snapshot

Found = TypeVar("Found")


class Lost(Exception):
    """The process is gone."""


class UntilStep:
    """Keeps a training at its step ``step``, as files would, and loses it there; 0: never. ``steps`` counts them."""

    def __init__(self, step: int = 0, files: tuple[bytes, str] | None = None) -> None:
        self.step, self.files, self.steps, self.ends = step, files, 0, 0

    def due(self) -> bool:
        self.steps += 1
        return self.steps == self.step

    def save(self, snapshot: Snapshot) -> None:
        tensors = {name: tensor.contiguous() for name, tensor in snapshot.tensors.items()}
        self.files = save(tensors), json.dumps(dict(snapshot.notes))
        raise Lost

    def last(self) -> Snapshot | None:
        return Snapshot(load(self.files[0]), json.loads(self.files[1])) if self.files else None

    def finish(self, final: Callable[[], Snapshot]) -> None:
        final()
        self.ends += 1


def steps_of(train: Callable[[Keeper], Found]) -> int:
    """Return how many steps ``train`` takes."""
    keeper = UntilStep()
    train(keeper)
    return keeper.steps


def lost_and_resumed(train: Callable[[Keeper], Found], step: int) -> tuple[Found, int]:
    """Return what ``train`` makes when it is lost behind ``step`` and resumed, and the steps that it took since."""
    first = UntilStep(step)
    with pytest.raises(Lost):
        train(first)
    second = UntilStep(files=first.files)
    return train(second), second.steps
