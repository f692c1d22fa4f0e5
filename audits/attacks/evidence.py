"""What an audit of one shadow set and one unlearning method has in hand when it comes to judge.

Evidence is gathered candidate by candidate (so that it can be sharded), stored, and read by the attacks through a
view that holds no more than the attack's declared access.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.errors import BadInput
from audits.oracles import Access

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Walks:
    """Labels along one kind of walk. Shadows of group g drew walk g; those of the other group are its pseudo-targets.

    K candidates, T steps, Q = 1 + 2T queries: at x, T times UNDER, T times OVER. ``True`` means "answered the true
    label". ``pseudo``: (2, n, K, Q); ``inside``: (2, n, K), was the candidate in the pseudo-target's training set
    before it was unlearned; ``target``: (2, K, Q); ``confidence``: (2, K, 2, T), mean probability of the true label
    over the out-shadows that drew the walk; ``radius``: (2, K, 2, T), L2 distance from x; ``queries``: (K,) labels
    asked of the target for a candidate, the one at x counted once.
    """

    pseudo: Bools
    inside: Bools
    target: Bools
    confidence: Floats
    radius: Floats
    queries: NDArray[np.int32]


@dataclass(frozen=True)
class Posteriors:
    """Logit-scaled confidences log(p_y/(1−p_y)) at x. ``shadow``: (m, K) of the unlearned shadows; ``inside``: (m, K);
    ``target``: (K,) of the unlearned target; ``queries``: (K,) posteriors asked of the target."""

    shadow: Floats
    inside: Bools
    target: Floats
    queries: NDArray[np.int32]


@dataclass(frozen=True)
class Evidence:
    """Everything gathered for K candidates; parts that were not gathered are ``None``.

    ``walks``: kinds "apollo" and "random"; ``offline``: the walk of the offline shadows, nothing inside.
    """

    walks: dict[str, Walks]
    offline: Walks | None
    posteriors: Posteriors | None

    def view(self, access: Access) -> Evidence:
        """Return what an attack with ``access`` may read: labels alone, or labels and posteriors."""
        return self if access == "posteriors" else Evidence(self.walks, self.offline, None)

    def walk(self, kind: str) -> Walks:
        """Return the walks of ``kind``; refuses kinds that were not gathered."""
        if kind not in self.walks:
            raise BadInput(f"no {kind!r} walks were gathered; gathered: {', '.join(self.walks) or 'none'}")
        return self.walks[kind]

    def offline_walk(self) -> Walks:
        """Return the offline walks; refuses when there are none."""
        if self.offline is None:
            raise BadInput("no offline walks were gathered; set split.offline_shadows to 2 or more")
        return self.offline

    def posterior(self) -> Posteriors:
        """Return the posteriors; refuses when the view does not hold them."""
        if self.posteriors is None:
            raise BadInput("posteriors are outside this attack's access (labels only)")
        return self.posteriors


CANDIDATE_AXIS = {
    "pseudo": 2,
    "inside": -1,
    "target": -2,
    "confidence": 1,
    "radius": 1,
    "queries": 0,
    "shadow": 1,
}


def to_arrays(part: Walks | Posteriors, prefix: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of ``part`` under names that start with ``prefix``, for storage."""
    return {f"{prefix}.{field.name}": getattr(part, field.name) for field in fields(part)}


def walks_from(arrays: dict[str, NDArray[Any]], prefix: str) -> Walks:
    """Return the walks that ``to_arrays`` stored under ``prefix``."""
    return Walks(**{field.name: arrays[f"{prefix}.{field.name}"] for field in fields(Walks)})


def posteriors_from(arrays: dict[str, NDArray[Any]], prefix: str) -> Posteriors:
    """Return the posteriors that ``to_arrays`` stored under ``prefix``."""
    return Posteriors(**{field.name: arrays[f"{prefix}.{field.name}"] for field in fields(Posteriors)})


def join_walks(parts: list[Walks]) -> Walks:
    """Return the walks of consecutive shards of candidates as one."""
    return Walks(**joined(parts, fields(Walks), {**CANDIDATE_AXIS, "target": 1}))


def join_posteriors(parts: list[Posteriors]) -> Posteriors:
    """Return the posteriors of consecutive shards of candidates as one."""
    return Posteriors(**joined(parts, fields(Posteriors), {**CANDIDATE_AXIS, "inside": 1, "target": 0}))


def joined(parts: list[Any], names: tuple[Any, ...], axes: dict[str, int]) -> dict[str, NDArray[Any]]:
    """Return every field of ``parts`` concatenated along its candidate axis."""
    return {
        field.name: np.concatenate([getattr(part, field.name) for part in parts], axis=axes[field.name])
        for field in names
    }
