"""Keepers of a training while it lasts, so that it can go on after its process is lost: the interface and two wrappers.

A snapshot holds a training between two of its steps; a keeper says when one is wanted, keeps it, and hands out the last
one when the same training begins again. A training that goes on from a snapshot ends with the bits of one that was
never disturbed (on a CPU); how long it took in between, and whether anybody kept anything, changes no result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Snapshot:
    """Named ``tensors`` on any device, and ``notes``: named JSON values. A name is a path, its parts joined by /."""

    tensors: Mapping[str, torch.Tensor] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)

    def part(self, name: str) -> Snapshot:
        """Return what stands below ``name``."""
        return Snapshot(below(self.tensors, name), below(self.notes, name))

    def without(self, name: str) -> Snapshot:
        """Return what does not stand below ``name``."""
        return Snapshot(
            {each: value for each, value in self.tensors.items() if not each.startswith(f"{name}/")},
            {each: value for each, value in self.notes.items() if not each.startswith(f"{name}/")},
        )

    def copied(self) -> Snapshot:
        """Return it with copies of the tensors on the CPU, which the training does not change any more."""
        return Snapshot({name: value.detach().to("cpu", copy=True) for name, value in self.tensors.items()}, self.notes)


def below(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the values whose names begin with ``name``/, by the rest of their names."""
    return {each.removeprefix(f"{name}/"): value for each, value in values.items() if each.startswith(f"{name}/")}


def joined(parts: Iterable[tuple[str, Snapshot]]) -> Snapshot:
    """Return one snapshot of several, each below its name."""
    tensors: dict[str, torch.Tensor] = {}
    notes: dict[str, Any] = {}
    for name, part in parts:
        tensors |= {f"{name}/{each}": value for each, value in part.tensors.items()}
        notes |= {f"{name}/{each}": value for each, value in part.notes.items()}
    return Snapshot(tensors, notes)


class Keeper(Protocol):
    """Keeps one training. It is asked behind every step, so ``due`` has to be quick."""

    def due(self) -> bool:
        """Say whether a snapshot is wanted now."""

    def save(self, snapshot: Snapshot) -> None:
        """Keep ``snapshot`` in the place of the one before; the tensors are the training's own and change later."""

    def last(self) -> Snapshot | None:
        """Return what was kept of this very training, None where it begins."""

    def finish(self, final: Callable[[], Snapshot]) -> None:
        """Learn that the training has come to its end, where ``final`` makes a snapshot."""


class NeverKept:
    """Keeps nothing: the default of every training."""

    def due(self) -> bool:
        return False

    def save(self, snapshot: Snapshot) -> None:
        pass

    def last(self) -> Snapshot | None:
        return None

    def finish(self, final: Callable[[], Snapshot]) -> None:
        pass


NEVER = NeverKept()


class Resumable(Protocol):
    """What changes beside a training: results gathered on the way, labels drawn anew."""

    def snapshot(self) -> Snapshot:
        """Return all that changes in it."""

    def resume(self, snapshot: Snapshot) -> None:
        """Become what it was at ``snapshot``."""


@dataclass(frozen=True)
class Beside:
    """A keeper that keeps ``side`` below ``name`` in the snapshots of the training that ``keeper`` keeps."""

    keeper: Keeper
    name: str
    side: Resumable

    def due(self) -> bool:
        return self.keeper.due()

    def save(self, snapshot: Snapshot) -> None:
        self.keeper.save(self.with_side(snapshot))

    def last(self) -> Snapshot | None:
        """Return the last snapshot of the training, and put the side back to where it was then."""
        found = self.keeper.last()
        if found is None:
            return None
        self.side.resume(found.part(self.name))
        return found.without(self.name)

    def finish(self, final: Callable[[], Snapshot]) -> None:
        self.keeper.finish(lambda: self.with_side(final()))

    def with_side(self, snapshot: Snapshot) -> Snapshot:
        """Return ``snapshot`` with that of the side below its name."""
        side = joined([(self.name, self.side.snapshot())])
        return Snapshot({**snapshot.tensors, **side.tensors}, {**snapshot.notes, **side.notes})


class Phases:
    """Keepers for the trainings of one job, which come one after the other: what has ended is kept with what has not.

    Costs a copy of each model that has ended, in memory and in every snapshot, while ``keeper`` keeps anything.
    """

    def __init__(self, keeper: Keeper) -> None:
        self.keeper = keeper
        self.found = keeper.last()
        self.ended: dict[str, Snapshot] = {}

    def of(self, name: str) -> Keeper:
        """Return the keeper of the training ``name``; every one of a job has a name of its own, without /."""
        return self.keeper if self.keeper is NEVER else Phase(self, name)


@dataclass(frozen=True)
class Phase:
    """The keeper of one training among those of a job."""

    phases: Phases
    name: str

    def due(self) -> bool:
        return self.phases.keeper.due()

    def save(self, snapshot: Snapshot) -> None:
        self.phases.keeper.save(joined([*self.phases.ended.items(), (self.name, snapshot)]))

    def last(self) -> Snapshot | None:
        found = self.phases.found.part(self.name) if self.phases.found else Snapshot()
        return found if found.notes else None

    def finish(self, final: Callable[[], Snapshot]) -> None:
        self.phases.ended[self.name] = final().copied()
