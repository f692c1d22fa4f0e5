"""Gathered evidence: answers of shadows and targets, kind by kind.

A part holds the answers of one kind for all candidates of a shadow set under one unlearning method. It is gathered
candidate by candidate (so that it can be sharded), stored, and read by the attacks through a view that holds no more
than the attack's declared access.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats
from audits.errors import BadInput
from audits.queries.access import Access

Arrays = Mapping[str, NDArray[Any]]

SHOWN: dict[Access, frozenset[str]] = {
    "labels": frozenset({"labels"}),
    "posteriors": frozenset({"labels", "posteriors"}),
    "logits": frozenset({"labels", "posteriors", "logits"}),
    "oracle": frozenset({"labels", "posteriors"}),
}
"""Access of an attack → accesses of the parts that it is shown; "oracle" is also told the truth."""


@dataclass(frozen=True)
class Part:
    """Arrays about K candidates; ``access`` is what gathering them takes, ``axes`` where each array counts
    candidates (None: not at all, equal in every shard). ``shadows``: where arrays count shadows, 1 behind an axis of
    the two halves, else 0, the second half behind the first; empty where no shadow can be left out."""

    access: ClassVar[Access]
    axes: ClassVar[Mapping[str, int | None]]
    shadows: ClassVar[Mapping[str, int]] = {}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays by name, for storage."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def of(cls, arrays: Arrays) -> Self:
        """Return the part that ``arrays`` stored."""
        return cls(**{field.name: arrays[field.name] for field in fields(cls)})

    @property
    def per_half(self) -> int:
        """Shadows of each half; 0 where none can be left out."""
        return next((getattr(self, name).shape[axis] // (2 - axis) for name, axis in self.shadows.items()), 0)

    def of_shadows(self, kept: Bools) -> Self:
        """Return the part with only those shadows of each half that ``kept`` (n,) names; walks stay as they were."""
        both = np.concatenate([kept, kept]), kept
        arrays = self.arrays()
        cut = {name: np.compress(both[axis], arrays[name], axis=axis) for name, axis in self.shadows.items()}
        return type(self)(**arrays | cut)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return consecutive shards of candidates as one part."""
        whole = {}
        for name, axis in cls.axes.items():
            pieces = [getattr(part, name) for part in parts]
            whole[name] = pieces[0] if axis is None else np.concatenate(pieces, axis=axis)
        return cls(**whole)


@dataclass(frozen=True)
class Walks(Part):
    """Labels along one kind of walk. Shadows of group g drew walk g; those of the other group are its pseudo-targets.

    K candidates; D directions of T steps; Q = D·T queries, and one more in front if the walk begins with the label at
    x. ``True`` means "answered the true label". ``pseudo``: (2, n, K, Q); ``inside``: (2, n, K), the pseudo-target had
    trained on the candidate and then unlearned it; ``outside``: (2, n, K), it never saw it (a candidate that it
    trained on and kept is neither); ``target``: (2, K, Q); ``confidence``: (2, K, D, T), mean probability of the true
    label over the out-shadows that drew the walk; ``radius``: (2, K, D, T), distance from x (L2); ``queries``: (K,)
    labels asked of the target for a candidate, the one at x counted once.
    """

    access: ClassVar[Access] = "labels"
    axes: ClassVar[Mapping[str, int | None]] = {
        "pseudo": 2,
        "inside": 2,
        "outside": 2,
        "target": 1,
        "confidence": 1,
        "radius": 1,
        "queries": 0,
    }
    shadows: ClassVar[Mapping[str, int]] = {"pseudo": 1, "inside": 1, "outside": 1}

    pseudo: Bools
    inside: Bools
    outside: Bools
    target: Bools
    confidence: Floats
    radius: Floats
    queries: NDArray[np.int32]

    @property
    def blocks(self) -> tuple[slice, ...]:
        """The columns of the queries that belong together: the label at x if asked, then one block a direction."""
        directions, steps = self.radius.shape[-2:]
        first = self.target.shape[-1] - directions * steps
        head = (slice(0, first),) if first else ()
        return (*head, *(slice(first + way * steps, first + (way + 1) * steps) for way in range(directions)))


@dataclass(frozen=True)
class Posteriors(Part):
    """Log-probabilities at x, float32. ``original`` and ``shadow``: (m, K, classes) of the shadows before and after
    unlearning; ``inside``: (m, K), trained on it, then unlearned it; ``outside``: (m, K), never saw it; ``target``:
    (K, classes) of the unlearned target; ``labels``: (K,) true classes; ``queries``: (K,) asked of the target."""

    access: ClassVar[Access] = "posteriors"
    axes: ClassVar[Mapping[str, int | None]] = {
        "original": 1,
        "shadow": 1,
        "inside": 1,
        "outside": 1,
        "target": 0,
        "labels": 0,
        "queries": 0,
    }
    shadows: ClassVar[Mapping[str, int]] = {"original": 0, "shadow": 0, "inside": 0, "outside": 0}

    original: NDArray[np.float32]
    shadow: NDArray[np.float32]
    inside: Bools
    outside: Bools
    target: NDArray[np.float32]
    labels: NDArray[np.int64]
    queries: NDArray[np.int32]


@dataclass(frozen=True)
class Evidence:
    """Everything gathered for K candidates by kind; ``truth``: (K,) forgotten, ``unseen``: (K,) never seen (None: all
    others), both shown to ``oracle`` alone."""

    parts: Mapping[str, Part]
    truth: Bools | None = None
    unseen: Bools | None = None

    def view(self, access: Access) -> Evidence:
        """Return what an attack with ``access`` may read."""
        shown = {kind: part for kind, part in self.parts.items() if part.access in SHOWN[access]}
        return Evidence(shown, self.truth, self.unseen) if access == "oracle" else Evidence(shown)

    def part(self, kind: str) -> Part:
        """Return the part of ``kind``; refuses kinds that were not gathered or are outside the access."""
        if kind not in self.parts:
            raise BadInput(
                f"no {kind!r} evidence was gathered within this attack's access; "
                f"there is: {', '.join(self.parts) or 'none'}"
            )
        return self.parts[kind]

    def walk(self, kind: str) -> Walks:
        """Return the walks of ``kind``; see ``part``."""
        found = self.part(kind)
        if not isinstance(found, Walks):
            raise BadInput(f"the {kind!r} evidence holds no walks")
        return found

    def posterior(self, kind: str = "posteriors") -> Posteriors:
        """Return the posteriors of ``kind``; see ``part``."""
        found = self.part(kind)
        if not isinstance(found, Posteriors):
            raise BadInput(f"the {kind!r} evidence holds no posteriors")
        return found
