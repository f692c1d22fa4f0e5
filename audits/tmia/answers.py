"""Answers of targets, null and reference models, as attacks of TMIA read them.

A label-only attack is shown labels and what was found with labels alone, of all three groups. The one exception are the
reference models' own confidences at the points to which confidence reconstruction is fitted (``fit_confidence``): these
models are the attacker's, so the confidences cost no access to a target.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from audits.arrays import Bools, Floats, Ids
from audits.errors import BadInput
from audits.queries.access import Access
from audits.tmia.design import GROUPS, Group

AttackAccess = Access | Literal["white_box"]
"""What an attack may see of a target; "white_box" shows its weights, and posteriors and labels with them."""
JUDGED: tuple[Group, ...] = ("target", "null")
"""Groups about which decisions are made."""
Kind = TypeVar("Kind", bound=np.generic)
Grouped = Mapping[Group, NDArray[Kind]]
"""One array a group, models first; a group without models has an array of no rows."""


@dataclass(frozen=True)
class Labels:
    """Answers about M of K candidates that take labels alone, models × M each.

    ``rows`` (M,): the candidates asked about, as places in ``candidates`` (K,), their point ids; ``label`` (K,): true
    classes. ``predicted``: the label at the point; ``star``: y*, the class whose boundary and votes are read: the true
    one, or each model's own. ``distance``: signed L2 distance to the boundary of y*, NaN where the search failed;
    ``votes``: share of noisy copies that keep y*. ``queries``: labels asked a point and model, by kind.

    Confidence reconstruction: ``fit_points`` (P,), ids of the attacker's points; ``fit_confidence`` (n, P) of reference
    models' y* there; ``fit_distance``: (n, P) of the same reference models or, for pairs of source "paper", (P,) of one
    target or (T, P) of several. What no attack of the audit reads may be None. Raises BadInput for shapes that do not
    fit together.
    """

    rows: Ids
    predicted: Grouped[np.int64]
    star: Grouped[np.int64]
    label: Ids
    candidates: Ids
    queries: Mapping[str, int]
    distance: Grouped[np.float64] | None = None
    votes: Grouped[np.float64] | None = None
    fit_distance: Floats | None = None
    fit_confidence: Floats | None = None
    fit_points: Ids | None = None

    def __post_init__(self) -> None:
        if self.label.shape != self.candidates.shape:
            raise BadInput(
                f"{self.label.size} labels and {self.candidates.size} ids of candidates are given; give one of each"
            )
        counts = {group: len(self.predicted[group]) for group in GROUPS}
        for name in ("predicted", "star", "distance", "votes"):
            given = getattr(self, name)
            if given is not None:
                check_shapes(name, given, counts, (self.rows.size,))

    @property
    def star_is_true(self) -> bool:
        """Whether y* is the true class of every point, for every model."""
        return all(bool((self.star[group] == self.label[self.rows]).all()) for group in GROUPS)

    def known(self, kind: str) -> Grouped[np.float64]:
        """Return the answers "distance" or "votes", or say that they are missing."""
        found: Grouped[np.float64] | None = {"distance": self.distance, "votes": self.votes}[kind]
        if found is None or kind not in self.queries:
            raise BadInput(
                f"no answers of kind {kind!r} were gathered; ask for them or leave out attacks that read them"
            )
        return found


@dataclass(frozen=True)
class Posteriors:
    """Posteriors of all models at all K candidates, and of the reference models at R points of the attacker's.

    ``posterior``: (models, K, classes) and ``star``: (models, K), the class y* by the rule of ``Labels.star``.
    ``shadow_posterior`` (n_ref, R, classes), ``shadow_member`` (n_ref, R): the reference model trained on the point;
    ``shadow_star`` (n_ref, R): its y*. Raises BadInput for shapes that do not fit, FloatingPointError for posteriors
    that are not finite.
    """

    posterior: Grouped[np.float32]
    star: Grouped[np.int64]
    shadow_posterior: NDArray[np.float32]
    shadow_member: Bools
    shadow_star: Ids

    def __post_init__(self) -> None:
        counts = {group: len(self.posterior[group]) for group in GROUPS}
        check_shapes("posterior", self.posterior, counts, self.posterior["target"].shape[1:])
        check_shapes("star", self.star, counts, self.posterior["target"].shape[1:2])
        shape = (counts["reference"], *self.shadow_posterior.shape[1:2])
        if not self.shadow_posterior.shape[:2] == self.shadow_member.shape == self.shadow_star.shape == shape:
            raise BadInput(
                f"shadow rows have posteriors {self.shadow_posterior.shape}, memberships {self.shadow_member.shape} "
                f"and classes {self.shadow_star.shape}; give (n_ref, R, classes), (n_ref, R) and (n_ref, R), with "
                f"n_ref = {counts['reference']}"
            )
        for group, found in (*self.posterior.items(), ("reference", self.shadow_posterior)):
            if not np.isfinite(found).all():
                raise FloatingPointError(f"a posterior of a {group} model is not a number; it may have diverged")


@dataclass(frozen=True)
class WhiteBox:
    """What the weights of a model show of a point (``audits.tmia.white_box``), of targets, null and S reference models.

    ``features``: (models, K, F) of targets and null models at all K candidates, and ``displacement`` (models, K);
    ``shadow_features`` (S, R, F), ``shadow_displacement`` (S, R), ``shadow_member`` (S, R): of the first S reference
    models at R points of the attacker's, some of which they trained on. Raises BadInput for shapes that do not fit,
    FloatingPointError for numbers that are not finite.
    """

    features: Grouped[np.float32]
    displacement: Grouped[np.float64]
    shadow_features: NDArray[np.float32]
    shadow_displacement: Floats
    shadow_member: Bools

    def __post_init__(self) -> None:
        shape = self.shadow_member.shape
        counts = {group: len(self.features[group]) for group in JUDGED}
        rest = self.features["target"].shape[1:]
        check_shapes("features", self.features, counts, (*rest[:1], *self.shadow_features.shape[2:]))
        check_shapes("displacement", self.displacement, counts, rest[:1])
        if not self.shadow_features.shape[:2] == self.shadow_displacement.shape == shape:
            raise BadInput(
                f"shadow rows have features {self.shadow_features.shape}, displacements "
                f"{self.shadow_displacement.shape} and memberships {shape}; give (S, R, F), (S, R) and (S, R)"
            )
        parts: list[NDArray[np.floating]] = [self.shadow_features, self.shadow_displacement]
        parts += [*self.features.values(), *self.displacement.values()]
        if not all(np.isfinite(part).all() for part in parts):
            raise FloatingPointError("a feature of a model's weights is not a number; it may have diverged")


@dataclass(frozen=True)
class Answers:
    """All answers of one setting; None for a part that was not gathered or lies beyond an attack's access.

    ``truth`` (T, K): which target trained on which candidate; for oracles, which bound what attacks could find.
    """

    labels: Labels | None = None
    posteriors: Posteriors | None = None
    truth: Bools | None = None
    white_box: WhiteBox | None = None

    def view(self, access: AttackAccess) -> Answers:
        """Return what an attack with ``access`` may read.

        Posteriors for all but "labels", what the weights show for "white_box" and the truth for "oracle".
        """
        return replace(
            self,
            posteriors=None if access == "labels" else self.posteriors,
            truth=self.truth if access == "oracle" else None,
            white_box=self.white_box if access == "white_box" else None,
        )

    def known_labels(self) -> Labels:
        """Return the answers gathered with labels alone, or say that they are missing."""
        if self.labels is None:
            raise BadInput("no candidate was asked with labels only; raise audit.asked or leave out attacks on labels")
        return self.labels

    def known_posteriors(self) -> Posteriors:
        """Return the posteriors, or say that they are missing or beyond the attack's access."""
        if self.posteriors is None:
            raise BadInput("there are no posteriors within this attack's access")
        return self.posteriors

    def known_white_box(self) -> WhiteBox:
        """Return what the weights show, or say that it is missing or beyond the attack's access."""
        if self.white_box is None:
            raise BadInput("there is nothing of the weights within this attack's access")
        return self.white_box

    def known_truth(self) -> Bools:
        """Return who trained on what, or say that it is beyond the attack's access."""
        if self.truth is None:
            raise BadInput("the truth about targets is not within this attack's access")
        return self.truth


def check_shapes(
    name: str, given: Mapping[Group, NDArray[np.generic]], counts: Mapping[Group, int], rest: tuple[int, ...]
) -> None:
    """Refuse arrays of groups that are not (models, ``rest``)."""
    for group, models in counts.items():
        shape = given[group].shape if group in given else None
        if shape != (models, *rest):
            raise BadInput(f"{name} of group {group} has shape {shape}; give {(models, *rest)}")
