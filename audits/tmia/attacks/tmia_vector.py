"""TMIA with whole posteriors: a discriminant of in against out, ranked among reference models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats
from audits.errors import BadInput
from audits.queries.access import Access
from audits.signals.loss import SMALLEST_CONFIDENCE
from audits.tmia.answers import Answers, Grouped
from audits.tmia.attacks.base import ATTACKS, JudgeSettings, Reading
from audits.tmia.attacks.ranked import RankAttack
from audits.tmia.design import GROUPS

RIDGE = 1e-3
"""Added to the covariance's diagonal in units of its mean: log posteriors nearly sum to a constant where one is 1."""


@ATTACKS.register("tmia_vector")
@dataclass(frozen=True)
class TmiaVector(RankAttack):
    """Ranks w·z, z the model's log posteriors at the point in falling order of the reference models' mean ones.

    Score: w·z. ``w`` is Fisher's linear discriminant of the reference models that trained on one of the attacker's
    samples (or whose teacher did) against those that did not, around the mean of the latter at the same sample: with
    Gaussian answers of one covariance the log likelihood ratio. Classes enter by their rank at the point and not by
    name, so that the label of the point is not needed and one ``w`` serves all points.

    Under H0 a model's w·z is exchangeable with those of reference models: w is learnt at other points, and the order of
    the classes at the point, from the mean of many, is the same for all.

    Source: ours, on the test of Chen et al., Journal on Communications 42(10), 2021.

    Deviations: the paper reads one confidence: where a student keeps nothing of its teacher's classes that one need not
    be where the teacher's training shows.

    Cost: posteriors at the candidates and at the attacker's samples; ``split.reference_models`` models, which serve all
    targets and candidates.

    Not for: labels alone.
    """

    access: ClassVar[Access] = "posteriors"
    reads: ClassVar[tuple[Reading, ...]] = ("posterior",)

    def statistics(self, view: Answers, settings: JudgeSettings) -> tuple[NDArray[np.int64], Grouped[np.float64], int]:
        """Return candidates, w·z and queries a point."""
        seen = view.known_posteriors()
        weights = discriminant(ordered(seen.shadow_posterior, seen.shadow_posterior), seen.shadow_member)
        own = seen.posterior["reference"]
        found = {group: ordered(seen.posterior[group], own) @ weights for group in GROUPS}
        return np.arange(own.shape[1]), found, 1


def ordered(posterior: NDArray[np.floating], reference: NDArray[np.floating]) -> Floats:
    """Return log posteriors (models, N, classes), each point's in falling order of the mean over ``reference``.

    ``reference`` (n_ref, N, classes); posteriors are cut at ``SMALLEST_CONFIDENCE``, as losses are.
    """
    order = np.argsort(-logs(reference).mean(0), axis=-1, kind="stable")
    found: Floats = np.take_along_axis(logs(posterior), np.broadcast_to(order, posterior.shape), axis=-1)
    return found


def logs(posterior: NDArray[np.floating]) -> Floats:
    """Return log posteriors in float64, less their mean over the classes."""
    found = np.log(np.maximum(posterior.astype(np.float64), SMALLEST_CONFIDENCE))
    centred: Floats = found - found.mean(-1, keepdims=True)
    return centred


def discriminant(z: Floats, member: Bools) -> Floats:
    """Return the weights (classes,) that tell models with ``member`` (n, R) from the others by ``z`` (n, R, classes).

    At each sample with models on both sides: the difference of the means; over samples, weighted by how many models
    make it; times the inverse of the covariance within sides. Raises BadInput where no sample has both sides.
    """
    inside, outside = (side.sum(0) for side in (member, ~member))
    both = (inside > 0) & (outside > 0)
    if not both.any():
        raise BadInput(
            "no reference sample has reference models that trained on it and others; raise audit.reference_samples"
        )
    z, member = z[:, both], member[:, both]
    means = [
        np.einsum("nr,nrc->rc", side, z) / side.sum(0)[:, None]
        for side in (member.astype(np.float64), (~member).astype(np.float64))
    ]
    effective = 1 / (1 / inside[both] + 1 / outside[both])
    shift = effective @ (means[0] - means[1]) / effective.sum()
    rest = z - np.where(member[..., None], *means)
    covariance = np.einsum("nrc,nrd->cd", rest, rest) / max(1, member.size - 2 * member.shape[1])
    scale = np.trace(covariance) / len(covariance)
    found: Floats = shift
    if scale > 0:
        found = np.linalg.solve(covariance + RIDGE * scale * np.eye(len(covariance)), shift)
    return found
