"""Older attacks, which learn from the reference models as shadows: what they read, and the verdict that they return.

The attacker knows which of its own points each reference model trained on. Attack networks learn from equally many
members and non-members of a shadow, at most ``ROWS`` rows in all, so that a fit takes under a second. None of these
attacks selects or ranks; targets and null models are judged by one fit, every candidate alike. None takes a target's
membership.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats, Ids
from audits.errors import BadInput
from audits.queries.access import Access
from audits.seeds import Purpose, derive_seed, numpy_generator
from audits.tmia.answers import JUDGED, Answers, Posteriors
from audits.tmia.attacks.base import Attack, JudgeSettings, Reading, Ruling

ROWS, SHADOWS = 1000, 10


@dataclass(frozen=True)
class Verdict:
    """``decision`` (T, K): called a member; ``score`` (T, K) float64: higher = more likely a member; ``attacked`` (K,):
    candidates about which the attack speaks, all unless it selects; for the others ``decision`` is False."""

    decision: Bools
    score: Floats
    attacked: Bools

    def __post_init__(self) -> None:
        if not np.isfinite(self.score).all():
            raise FloatingPointError("a score is not a number; a target or a shadow may have diverged")


@dataclass(frozen=True)
class ShadowRows:
    """Answers of one shadow about points of which it is known whether it trained on them.

    ``posterior`` (N, classes), ``member`` (N,) bool, ``label`` (N,) int64: the true class, or in attacks II and III the
    shadow's own predicted one. Give equally many of either kind: learned attacks take the shares as prior.
    """

    posterior: NDArray[np.floating]
    member: Bools
    label: Ids

    def __post_init__(self) -> None:
        if self.posterior.ndim != 2 or not len(self.posterior) == len(self.member) == len(self.label):
            raise BadInput(
                f"shadow rows have posteriors {self.posterior.shape}, {len(self.member)} memberships and "
                f"{len(self.label)} labels; give (N, classes), N and N"
            )
        if not np.isfinite(self.posterior).all():
            raise FloatingPointError("a posterior of a shadow is not a number; the shadow may have diverged")


@dataclass(frozen=True)
class Asked:
    """Targets, then null models: ``posterior`` (models, K, classes) and ``star``, y* (models, K)."""

    posterior: NDArray[np.float32]
    star: NDArray[np.int64]


@dataclass(frozen=True)
class PosteriorAttack(Attack):
    """Judges the posteriors of all candidates by what the shadows show."""

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[Reading, ...]] = ("posterior",)

    def find(self, view: Answers, settings: JudgeSettings, seed: int) -> Ruling:
        """Return the ruling; the statistic is the score of the attack's verdict."""
        seen = view.known_posteriors()
        asked = Asked(*(np.concatenate([given[group] for group in JUDGED]) for given in (seen.posterior, seen.star)))
        verdict = self.verdict(seen, asked, settings, seed)
        return ruled(verdict, np.arange(asked.star.shape[1]), len(seen.posterior["target"]))

    @abstractmethod
    def verdict(self, seen: Posteriors, asked: Asked, settings: JudgeSettings, seed: int) -> Verdict:
        """Return the verdict on what ``asked`` models answer."""


def ruled(verdict: Verdict, rows: NDArray[np.int64], targets: int) -> Ruling:
    """Return the ruling of a verdict on targets, then null models, that took one query a point."""
    return Ruling(
        rows=rows,
        statistic={"target": verdict.score[:targets], "null": verdict.score[targets:]},
        decision={"target": verdict.decision[:targets], "null": verdict.decision[targets:]},
        queries=1,
    )


def shadow_rows(seen: Posteriors, taken: NDArray[np.bool_]) -> list[ShadowRows]:
    """Return the rows of every reference model at the points ``taken`` (n_ref, R), for models with any."""
    kept = [model for model in range(len(taken)) if taken[model].any()]
    return [
        ShadowRows(
            seen.shadow_posterior[model, taken[model]],
            seen.shadow_member[model, taken[model]],
            seen.shadow_star[model, taken[model]],
        )
        for model in kept
    ]


def balanced_shadows(seen: Posteriors, models: int, seed: int) -> list[ShadowRows]:
    """Return rows of the first ``models`` reference models, as many members as non-members each, ``ROWS`` in all.

    Which points stand for a model is drawn by ``seed`` from its members and from its non-members; models that have
    none of either are left out. Raises BadInput where no model is left.
    """
    return shadow_rows(seen, balanced(seen.shadow_member, models, seed))


def balanced(member: Bools, models: int, seed: int) -> Bools:
    """Return which rows (n, R) of the first ``models`` shadows to learn from; see ``balanced_shadows``.

    ``member`` (n, R): the shadow trained on the point.
    """
    first = member[:models]
    most = max(1, ROWS // (2 * len(first)))
    taken = np.zeros(member.shape, dtype=np.bool_)
    for model, own in enumerate(first):
        rng = numpy_generator(derive_seed(seed, Purpose.SHADOW_ROWS, model))
        count = min(most, int(own.sum()), int((~own).sum()))
        for kind in (own, ~own):
            taken[model, rng.choice(np.flatnonzero(kind), count, replace=False)] = True
    if not taken.any():
        raise BadInput(
            f"none of the first {len(first)} reference models trained on some of the {first.shape[1]} reference "
            "samples and not on others; raise audit.reference_samples"
        )
    return taken


def everyone(judged: NDArray[np.generic]) -> Bools:
    """Return (K,) True for (T, K): the attack speaks about every candidate."""
    return np.ones(judged.shape[1], dtype=np.bool_)
