"""What every attack shares: declared access, the finding, and thresholds that are fixed on shadows alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from audits.evidence.parts import Evidence
from audits.oracles import Access
from audits.registry import Registry

Floats = NDArray[np.float64]

ATTACKS: Registry[type[Attack]] = Registry("attack")


@dataclass(frozen=True)
class Finding:
    """``score``: (K,), higher = more likely forgotten; ``null``: the same score of models of which it is known that
    they never saw the point (any length); ``queries``: (K,) put to the target. ``parts``: where the score is a mean
    over scores with nulls of their own, those (score, null) pairs; they decide one by one, because the mean of several
    is narrower than the null of each. ``groups``: (K, 3) log-odds of forget, retained and unseen, of attacks that tell
    the three apart; None for the others."""

    score: Floats
    null: Floats
    queries: NDArray[np.int32]
    parts: tuple[tuple[Floats, Floats], ...] = ()
    groups: Floats | None = None

    def decide(self, rate: float) -> Floats:
        """Return the probability (K,) of saying "forgotten" at the promised false-positive ``rate``."""
        parts = self.parts or ((self.score, self.null),)
        found: Floats = np.mean([decided(score, null, rate) for score, null in parts], axis=0)
        return found

    def p_values(self) -> Floats:
        """Return the p-value (K,) of "the target never saw the point", from null scores alone.

        Where the score has several parts, part k mod n speaks for candidate k: fixed before anybody is asked, so the
        p-value is valid whatever the parts have in common, and agrees with ``decide``. Rules that merge the parts and
        hold under any dependence cost more than the second part is worth: share of forgotten points with p ≤ .05 along
        Apollo's two walks (fashion14, identity, 250 points, walks correlated by .9): twice the average .064, twice the
        minimum .128, one part .148; simulated in ``tests/test_p_values.py``.
        """
        parts = self.parts or ((self.score, self.null),)
        place = np.arange(len(self.score)) % len(parts)
        values: Floats = np.choose(place, [p_values(score, null) for score, null in parts])
        return values


@dataclass(frozen=True)
class Attack(ABC):
    """An attack reads evidence of the kinds ``reads`` within its declared access; one finding for all candidates."""

    name: ClassVar[str]
    access: ClassVar[Access]
    reads: ClassVar[tuple[str, ...]]

    def judge(self, evidence: Evidence) -> Finding:
        """Return the finding of this attack, which is shown no more than its access allows."""
        finding = self.find(evidence.view(self.access))
        if not (np.isfinite(finding.score).all() and np.isfinite(finding.null).all()):
            raise FloatingPointError(
                f"attack {self.name} gave a score that is not a number; a shadow or the target may have diverged"
            )
        return finding

    @abstractmethod
    def find(self, evidence: Evidence) -> Finding:
        """Return scores of the candidates and of the null models."""


A = TypeVar("A", bound=type[Attack])


def attack(name: str) -> Callable[[A], A]:
    """File an attack under ``name``."""

    def file(cls: A) -> A:
        cls.name = name
        ATTACKS.register(name)(cls)
        return cls

    return file


def decided(score: Floats, null: Floats, rate: float) -> Floats:
    """Return the probability (K,) of saying "forgotten": that the smoothed conformal p-value is at most ``rate``.

    p = (#{null > s} + U·(1 + #{null = s})) / (1 + N) with U uniform (Vovk, Gammerman and Shafer, Algorithmic Learning
    in a Random World, 2005): of scores exchangeable with the null exactly ``rate`` are called forgotten, whatever N and
    the ties. A threshold with a share ``rate`` of the null above it keeps less than it promises, by up to 1/N: a new
    score lies above the second largest of 1 200 with probability 2/1201, though only 1/1200 of these do. Where
    "forgotten" begins is settled by null scores alone, so it stands before any target has been asked.
    """
    ordered = np.sort(null)
    not_above = np.searchsorted(ordered, score, side="right")
    tied = not_above - np.searchsorted(ordered, score, side="left")
    share = (rate * (ordered.size + 1) - (ordered.size - not_above)) / (1 + tied)
    return np.clip(share, 0.0, 1.0)


def p_values(score: Floats, null: Floats) -> Floats:
    """Return (1 + #{null ≥ score}) / (1 + N) for every score (K,) of N null scores.

    Never 0, and P(p ≤ a) ≤ a for a score exchangeable with the null (a conformal p-value); equal scores count as null,
    so ties cost power and never validity, and no point is exposed by a coin.
    """
    ordered = np.sort(null)
    return np.asarray((1 + ordered.size - np.searchsorted(ordered, score, side="left")) / (1 + ordered.size))
