"""The input of attacks on membership: answers of the judged models and of shadows, part by part.

K points of a pool are asked about, and Z known non-members stand beside them: points of the same distribution that no
model of the design trained on. Which of the K points a judged model trained on is told nowhere.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats, Ids
from audits.arrays import Labels as Classes
from audits.errors import BadInput
from audits.queries.access import Access
from audits.signals.confidence import of_true_class, scaled

SOFT = 2.0
"""The temperature of softened posteriors, that of RMIA."""


@dataclass(frozen=True)
class Labels:
    """Whether the class that a model gives is the true one: ``right`` (A, K) and ``known`` (A, Z) bool."""

    right: Bools
    known: Bools


@dataclass(frozen=True)
class Distances:
    """Signed distances to the boundary of the true class, from labels alone, at some points.

    ``points`` (D,): their places among the K; ``distance`` (A, D) and of known non-members ``known`` (A, E), float64;
    ``queries``: labels that each distance costs. NaN where a search found no way across.
    """

    points: Ids
    distance: Floats
    known: Floats
    queries: int


@dataclass(frozen=True)
class Posteriors:
    """Signals of A models: log p_y and log(p_y/(1 − p_y)) at the points (A, K) and at known non-members (A, Z).

    ``softened`` and ``known_softened``: log p_y by a softmax of temperature ``SOFT``.
    """

    log_p: Floats
    confidence: Floats
    softened: Floats
    known_log_p: Floats
    known_confidence: Floats
    known_softened: Floats

    @classmethod
    def of(cls, logits: NDArray[Any], known: NDArray[Any], labels: Classes, known_labels: Classes) -> Posteriors:
        """Return the signals of ``logits`` (A, K, classes) and, at known non-members, ``known`` (A, Z, classes)."""
        from scipy.special import log_softmax

        found = []
        for part, classes in ((logits, labels), (known, known_labels)):
            exact = log_softmax(part.astype(np.float64), axis=-1)
            soft = log_softmax(part.astype(np.float64) / SOFT, axis=-1)
            found += [of_true_class(exact, classes), scaled(exact, classes), of_true_class(soft, classes)]
        return cls(*found)

    def __len__(self) -> int:
        return len(self.log_p)

    def at(self, temperature: float) -> tuple[Floats, Floats]:
        """Return log p_y at the points and at known non-members by a softmax of ``temperature``: 1 or ``SOFT``."""
        return {1.0: (self.log_p, self.known_log_p), SOFT: (self.softened, self.known_softened)}[temperature]

    def take(self, rows: Any) -> Posteriors:
        """Return the signals of the models ``rows``."""
        return Posteriors(*(part[rows] for part in self.parts))

    def beside(self, other: Posteriors) -> Posteriors:
        """Return these models and behind them ``other``."""
        return Posteriors(*(np.concatenate(pair) for pair in zip(self.parts, other.parts, strict=True)))

    @property
    def parts(self) -> tuple[Floats, ...]:
        """The arrays in the order of the fields."""
        return tuple(getattr(self, field.name) for field in fields(self))


@dataclass(frozen=True)
class Inputs:
    """The points themselves, flat: ``x`` (K, F) and ``known`` (Z, F), with their classes (K,) and (Z,)."""

    x: NDArray[Any]
    known: NDArray[Any]
    labels: Classes
    known_labels: Classes


@dataclass(frozen=True)
class Case:
    """What there is about the judged models of one pool, targets and null models alike; rows 0 to T.

    ``shadows``: M models whose points are known, ``half`` (M, K) bool, rows 2i and 2i + 1 twins; ``strangers``: models
    of the attacker that were trained on none of the points, nor on any that shadows have. ``ordinary`` (K,) bool:
    points that may stand for others, all but canaries. Parts that an attack's access does not allow are None.
    """

    labels: Labels
    ordinary: Bools
    posteriors: Posteriors | None = None
    distances: Distances | None = None
    inputs: Inputs | None = None
    shadows: Posteriors | None = None
    half: Bools | None = None
    strangers: Posteriors | None = None

    def __post_init__(self) -> None:
        if self.half is None:
            return
        if len(self.half) % 2 or (self.half[::2] == self.half[1::2]).any():
            raise BadInput("half: rows 2i and 2i + 1 must be twins, every point in exactly one of them")

    def view(self, access: Access) -> Case:
        """Return the case as an attack with ``access`` may see it."""
        if access == "labels":
            return replace(self, posteriors=None, shadows=None, half=None, strangers=None, inputs=None)
        return replace(self, distances=None)

    def with_shadows(self, count: int) -> Case:
        """Return the case with the first ``count`` shadows alone, an even number."""
        shadows, half = self.known_shadows("a subset of the shadows")
        if count % 2 or not 2 <= count <= len(half):
            raise BadInput(f"{count} of {len(half)} shadows; allowed: an even number, 2 or more, up to all of them")
        return replace(self, shadows=shadows.take(slice(count)), half=half[:count])

    def without_pair(self, pair: int) -> Case:
        """Return the case without the shadows 2·``pair`` and 2·``pair`` + 1."""
        shadows, half = self.known_shadows("a jackknife over shadows")
        rest = np.delete(np.arange(len(half)), [2 * pair, 2 * pair + 1])
        return replace(self, shadows=shadows.take(rest), half=half[rest])

    def known_posteriors(self, attack: str) -> Posteriors:
        """Return the posteriors; raises ``BadInput`` for a case without them."""
        if self.posteriors is None:
            raise BadInput(f"attack {attack} reads posteriors of the judged models, which are missing")
        return self.posteriors

    def known_shadows(self, attack: str) -> tuple[Posteriors, Bools]:
        """Return shadows and their halves; raises ``BadInput`` for a case without them."""
        if self.shadows is None or self.half is None:
            raise BadInput(f"attack {attack} reads shadows, which are missing; raise split.shadows")
        return self.shadows, self.half


def case_of(
    logits: NDArray[Any],
    known: NDArray[Any],
    inputs: Inputs,
    ordinary: Bools,
    shadows: tuple[NDArray[Any], NDArray[Any], Bools] | None = None,
    distances: Distances | None = None,
    strangers: tuple[NDArray[Any], NDArray[Any]] | None = None,
) -> Case:
    """Return the case of judged models by their ``logits`` (T, K, classes) and, at known non-members, ``known``.

    ``shadows``: the same two arrays of the shadows, and their halves; ``strangers``: the two arrays of strangers.
    """
    classes = inputs.labels, inputs.known_labels
    return Case(
        labels=Labels(logits.argmax(-1) == classes[0], known.argmax(-1) == classes[1]),
        ordinary=ordinary,
        posteriors=Posteriors.of(logits, known, *classes),
        distances=distances,
        inputs=inputs,
        shadows=None if shadows is None else Posteriors.of(shadows[0], shadows[1], *classes),
        half=None if shadows is None else shadows[2],
        strangers=None if strangers is None else Posteriors.of(*strangers, *classes),
    )
