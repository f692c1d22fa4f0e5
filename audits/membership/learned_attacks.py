"""Older attacks, which learn from the contrast models as shadows: GMIA, FMIA, Yeom's threshold; and label gap.

The attacker knows which of its own points each contrast model trained on. Attack networks learn from equally many
members and non-members of a shadow, at most ``ROWS`` rows in all, so that a fit takes under a second. None of these
attacks selects or ranks; targets and fresh models are judged by one fit.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.errors import BadInput
from audits.membership.answers import Answers, Posteriors
from audits.membership.attack_base import JUDGED, Attack, JudgeSettings, Reading, Ruling, attack
from audits.membership.fmia import Fmia
from audits.membership.gmia import Gmia1, Gmia2, Gmia3
from audits.membership.simple import LabelGap, ShadowRows, Verdict, Yeom
from audits.oracles import Access
from audits.seeds import derive_seed, numpy_generator

ROWS, SHADOWS = 1000, 10


@dataclass(frozen=True)
class Asked:
    """Targets, then fresh models: ``posterior`` (models, K, classes) and ``star``, y* (models, K)."""

    posterior: NDArray[np.float32]
    star: NDArray[np.int64]


@dataclass(frozen=True)
class PosteriorAttack(Attack):
    """Judges the posteriors of all candidates by what the shadows show."""

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[Reading, ...]] = ("posterior",)

    def find(self, view: Answers, settings: JudgeSettings, seed: int) -> Ruling:
        """See ``Attack.find``: the statistic is the score of the attack's verdict."""
        seen = view.known_posteriors()
        asked = Asked(*(np.concatenate([given[group] for group in JUDGED]) for given in (seen.posterior, seen.star)))
        verdict = self.verdict(seen, asked, settings, seed)
        return ruled(verdict, np.arange(asked.star.shape[1]), len(seen.posterior["target"]))

    @abstractmethod
    def verdict(self, seen: Posteriors, asked: Asked, settings: JudgeSettings, seed: int) -> Verdict:
        """Return the verdict on what ``asked`` models answer."""


@attack("gmia1")
@dataclass(frozen=True)
class Gmia1Attack(PosteriorAttack):
    """GMIA, adversary 1 (Salem et al., NDSS 2019): the one shadow is contrast model 0."""

    def verdict(self, seen: Posteriors, asked: Asked, settings: JudgeSettings, seed: int) -> Verdict:
        """See ``PosteriorAttack.verdict``; the score is the log-odds."""
        return Gmia1().judge(balanced_shadows(seen, 1, seed)[0], asked.posterior, seed)


@attack("gmia2")
@dataclass(frozen=True)
class Gmia2Attack(PosteriorAttack):
    """GMIA, adversary 2, as far as the population allows: the shadows are the first ``SHADOWS`` contrast models.

    A stand-in: the paper's adversary 2 knows neither the target's structure nor its data and uses shadows of others,
    but all contrast models share the target's. It is adversary 1 with more shadows.
    """

    def verdict(self, seen: Posteriors, asked: Asked, settings: JudgeSettings, seed: int) -> Verdict:
        """See ``PosteriorAttack.verdict``; the score is the log-odds."""
        return Gmia2().judge(balanced_shadows(seen, SHADOWS, seed), asked.posterior, seed)


@attack("gmia3")
@dataclass(frozen=True)
class Gmia3Attack(PosteriorAttack):
    """GMIA, adversary 3: a threshold on the largest posterior, from all contrast models' non-members, at level beta."""

    has_level: ClassVar[bool] = True

    def verdict(self, seen: Posteriors, asked: Asked, settings: JudgeSettings, seed: int) -> Verdict:
        """See ``PosteriorAttack.verdict``; the score is the largest posterior."""
        return Gmia3(settings.beta).judge(shadow_rows(seen, ~seen.shadow_member), asked.posterior)


@attack("fmia")
@dataclass(frozen=True)
class FmiaAttack(PosteriorAttack):
    """FMIA (Zou et al., arXiv 2009.04872): the shadows are the first ``SHADOWS`` contrast models; classes are y*."""

    def verdict(self, seen: Posteriors, asked: Asked, settings: JudgeSettings, seed: int) -> Verdict:
        """See ``PosteriorAttack.verdict``; the score is the log-odds."""
        return Fmia().judge(balanced_shadows(seen, SHADOWS, seed), asked.posterior, asked.star, seed)


@attack("yeom")
@dataclass(frozen=True)
class YeomAttack(PosteriorAttack):
    """Loss threshold (Yeom et al., arXiv 1709.01604): the mean training loss of all contrast models."""

    def verdict(self, seen: Posteriors, asked: Asked, settings: JudgeSettings, seed: int) -> Verdict:
        """See ``PosteriorAttack.verdict``; the score is minus the loss."""
        return Yeom().judge(shadow_rows(seen, seen.shadow_member), asked.posterior, asked.star)


@attack("label_gap")
@dataclass(frozen=True)
class LabelGapAttack(Attack):
    """Member if the label is right (Yeom et al., arXiv 1709.01604): one query; vacuous where y* is the own label."""

    access: ClassVar[Access] = "labels"
    reads: ClassVar[tuple[Reading, ...]] = ()
    needs_true_label: ClassVar[bool] = True

    def find(self, view: Answers, settings: JudgeSettings, seed: int) -> Ruling:
        """See ``Attack.find``: the statistic is 1 where the label is right, else 0."""
        labels = view.known_labels()
        predicted = np.concatenate([labels.predicted[group] for group in JUDGED])
        verdict = LabelGap().judge(predicted, labels.label[labels.rows])
        return ruled(verdict, labels.rows, len(labels.predicted["target"]))


def ruled(verdict: Verdict, rows: NDArray[np.int64], targets: int) -> Ruling:
    """Return the ruling of a verdict on targets, then fresh models, that took one query a point."""
    return Ruling(
        rows=rows,
        statistic={"target": verdict.score[:targets], "fresh": verdict.score[targets:]},
        decision={"target": verdict.decision[:targets], "fresh": verdict.decision[targets:]},
        queries=1,
    )


def shadow_rows(seen: Posteriors, taken: NDArray[np.bool_]) -> list[ShadowRows]:
    """Return the rows of every contrast model at the points ``taken`` (n_ref, R), for models with any."""
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
    """Return rows of the first ``models`` contrast models, as many members as non-members each, ``ROWS`` in all.

    Which points stand for a model is drawn by ``seed`` from its members and from its non-members; models that have
    none of either are left out. Raises BadInput where no model is left.
    """
    member = seen.shadow_member[:models]
    most = max(1, ROWS // (2 * len(member)))
    taken = np.zeros(seen.shadow_member.shape, dtype=np.bool_)
    for model, own in enumerate(member):
        rng = numpy_generator(derive_seed(seed, "shadow rows", model))
        count = min(most, int(own.sum()), int((~own).sum()))
        for kind in (own, ~own):
            taken[model, rng.choice(np.flatnonzero(kind), count, replace=False)] = True
    if not taken.any():
        raise BadInput(
            f"none of the first {len(member)} contrast models trained on some of the {member.shape[1]} contrast "
            "samples and not on others; raise audit.contrast_samples"
        )
    return shadow_rows(seen, taken)
