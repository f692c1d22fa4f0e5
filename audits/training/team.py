"""The workers that train one model together: who they are, which part of a batch is whose, what the first one tells.

Every worker goes through the whole training and draws all that one worker would draw; of each batch it computes its own
share (``together``). What a training comes to is the same on all of them, so that the first one keeps it.
"""

from __future__ import annotations

import hmac
import pickle
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from audits.training.keeper import Keeper, Snapshot

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


class Stranger(ConnectionError):
    """Somebody who is no member speaks to a team."""


@dataclass(frozen=True)
class Team:
    """Worker ``rank`` of ``size`` workers of one model, joined by ``group`` (torch.distributed); the first one leads.

    ``sync_batch_norm``: BatchNorm takes its statistics over the whole batch, as one worker does; otherwise each takes
    those of its share, and the running ones of the first are kept. ``key``: a secret of the team, by which its members
    know that they hear one another, and no stranger who got into their talk.
    """

    rank: int = 0
    size: int = 1
    group: ProcessGroup | None = None
    sync_batch_norm: bool = True
    key: bytes = field(default=b"", repr=False)

    @property
    def leads(self) -> bool:
        """Whether this worker writes what the team makes."""
        return self.rank == 0

    def share(self, points: int) -> slice:
        """Return which of the ``points`` of a batch are this worker's: all, where not everybody would have two."""
        if points < 2 * self.size:
            return slice(0, points)
        return slice(points * self.rank // self.size, points * (self.rank + 1) // self.size)

    def from_first(self, value: Any = None) -> Any:
        """Return what the first worker calls this with; all workers call it at the same place.

        Raises Stranger for what was not said with the key of the team: nothing of it is unpickled.
        """
        if self.size == 1:
            return value
        data = pickle.dumps(value) if self.leads else b""
        signature, data = self._broadcast(self._sign(data) if self.leads else b""), self._broadcast(data)
        if not hmac.compare_digest(signature, self._sign(data)):
            raise Stranger("a stranger spoke to this team of workers; start the run again")
        return pickle.loads(data)

    def greet(self) -> None:
        """Raise Stranger unless all members hear of each other what only members can know."""
        for rank in range(self.size):
            said = self._broadcast(self._sign(str(rank).encode()) if rank == self.rank else b"", rank)
            if not hmac.compare_digest(said, self._sign(str(rank).encode())):
                raise Stranger("a stranger joined this team of workers; start the run again")

    def _sign(self, data: bytes) -> bytes:
        if not self.key:
            raise ValueError("workers of a team share a secret; give all of them the same key")
        return hmac.digest(self.key, data, "sha256")

    def _broadcast(self, data: bytes, source: int = 0) -> bytes:
        """Return the bytes that the worker ``source`` calls this with."""
        import torch
        import torch.distributed as dist

        own = self.rank == source
        size = torch.tensor([len(data) if own else 0])
        dist.broadcast(size, group=self.group, group_src=source)
        box = torch.frombuffer(bytearray(data), dtype=torch.uint8) if own else torch.empty(int(size), dtype=torch.uint8)
        if len(box):
            dist.broadcast(box, group=self.group, group_src=source)
        return box.numpy().tobytes()


ALONE = Team()
"""The team of one worker that trains a model by itself."""


@dataclass(frozen=True)
class KeptByFirst:
    """The keeper of a training of ``team``: its first worker keeps it by ``keeper``, and tells all where it stood."""

    keeper: Keeper
    team: Team

    def due(self) -> bool:
        return self.team.leads and self.keeper.due()

    def save(self, snapshot: Snapshot) -> None:
        self.keeper.save(snapshot)

    def last(self) -> Snapshot | None:
        """Return the last snapshot that the first worker finds."""
        found: Snapshot | None = self.team.from_first(self.keeper.last() if self.team.leads else None)
        return found

    def finish(self, final: Callable[[], Snapshot]) -> None:
        if self.team.leads:
            self.keeper.finish(final)
