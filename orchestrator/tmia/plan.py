"""The plan of a TMIA audit (``audit.kind: tmia``): one mode of transfer learning, and variants of it.

Every default is that of the embedded default, ``orchestrator/plans/tmia-fashion14.yaml`` (a test holds them together).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from audits.tmia.design import MembershipSplit
from audits.training.recipe import Recipe
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.sections import Classes, Compute, Data, Model, Positive, Section, Share, Tracking
from orchestrator.engine.plan.target import Target

Mode = Literal["I", "II", "III"]
Star = Literal["true", "own"]
STARS: Mapping[str, Star] = {"I": "true", "II": "own", "III": "own"}
ATTACKS = (
    "tmia",
    "tmia_distance",
    "tmia_posterior",
    "rmia",
    "tmia_smoothed",
    "pmia",
    "gmia1",
    "gmia2",
    "gmia3",
    "fmia",
    "yeom",
    "label_gap",
    "noise_votes",
)


class Alpha(Section):
    """Where selectors cut: above a ``quantile`` of the reference samples' scores, an ``absolute`` score, or by size."""

    quantile: Share | None = None
    """Cut above this quantile of the reference samples' scores."""
    absolute: float | None = None
    """Cut above this score."""
    size: Positive | None = None
    """So many candidates with the largest scores."""


class HopSkipJump(Section):
    """How many labels a signed distance may cost: ``rank`` 316, ``plain`` 3 734, ``absolute`` 3 899 a point."""

    schedule: Literal["rank", "plain", "absolute"] = "rank"
    """How the search spends its labels: rank is enough for ranks, absolute for distances."""


class Reconstruction(Section):
    """The map from distance to confidence, and the attacker's points and reference models that it is fitted to."""

    map: Literal["logistic", "isotonic", "polynomial"] = "logistic"
    """Form of the map from distance to confidence."""
    degree: Positive = 3
    """Degree of the polynomial."""
    pairs: Literal["reference", "paper"] = "reference"
    """Whose distances it is fitted to: the reference models' (reference) or the target's (paper)."""
    points: Annotated[int, Field(ge=4)] = 40
    """The attacker's points that it is fitted to."""
    models: Positive = 20
    """Reference models that it is fitted to."""


class Noise(Section):
    """Noise votes: standard deviation in units of the inputs, and noisy copies of each point."""

    sigma: Annotated[float, Field(gt=0)] = 0.1
    """Standard deviation of the noise, in units of the inputs."""
    copies: Positive = 32
    """Noisy copies of a point."""


class Neighbourhood(Section):
    """Selector ``neighbours``: cosine distance of features up to which points are neighbours, and how few are rare."""

    delta: Annotated[float, Field(gt=0, le=2)] = 0.02
    """Cosine distance of features up to which points are neighbours."""
    rare: Annotated[float, Field(gt=0)] = 0.1
    """Expected neighbours in the training set below which a candidate is rare."""


class Audit(Section):
    """Which attack mode, which selectors and attacks, and at which level β a candidate is called a member.

    ``star``: the class y* whose confidence counts (null: the true one in mode I, each model's own in II and III;
    "true" in mode II: the true one where the student has it, by name, else its own);
    ``asked``: candidates that are asked with labels only: a random sample (if ``none`` is a selector) and, every other
    turn, the foremost of the selectors' rankings;
    ``pool_correction``: p-values allow for the points that reference models share (``audits.tmia.shared_pool``);
    ``reference_samples``: points of the attacker that selectors and learned attacks read beside the candidates.
    """

    RENAMED: ClassVar[dict[str, str]] = {"contrast_samples": "reference_samples", "pool": "asked"}

    kind: Literal["tmia"] = "tmia"
    """The kind of audit."""
    mode: Mode = "I"
    """Attack I: a teacher about its training set; II: a student about its teacher's; III: a student about its own."""
    star: Star | None = None
    selectors: Annotated[tuple[str, ...], Field(min_length=1)] = ("none", "kmeans", "reference_loss", "neighbours")
    """Selectors of candidates, by name; each makes a selection of its own."""
    alpha: Alpha = Alpha(quantile=0.95)
    """Where selectors cut."""
    neighbours: Neighbourhood = Neighbourhood()
    beta: Share = 0.05
    """Level of the tests: a candidate is called a member where p ≤ β."""
    pool_correction: bool = True
    attacks: Annotated[tuple[str, ...], Field(min_length=1)] = ATTACKS
    """The attacks that run, by name."""
    asked: Positive = 320
    hop_skip_jump: HopSkipJump = HopSkipJump()
    """How many labels a signed distance may cost: ``rank`` 316, ``plain`` 3 734, ``absolute`` 3 899 a point."""
    reconstruction: Reconstruction = Reconstruction()
    noise: Noise = Noise()
    reference_samples: Positive = 4000
    level: Share = 0.95
    """Confidence of intervals, and of the tests of controls."""
    bootstrap: Annotated[int, Field(ge=20)] = 1000
    """Draws of the bootstrap."""

    @property
    def y_star(self) -> Star:
        """The class whose confidence counts."""
        return self.star or STARS[self.mode]


class Split(Section):
    """Who trains on what (``audits.tmia.design``), and the classes of the data set that take part."""

    RENAMED: ClassVar[dict[str, str]] = {
        "contrast": "reference_models", "fresh": "null_models", "pool": "attacker_points",
    }  # fmt: skip

    targets: Positive = 40
    """Target models; even."""
    reference_models: Positive = 100
    """Reference models n_ref: no p-value is below 1/(n_ref + 1)."""
    null_models: Annotated[int, Field(ge=0)] = 20
    """Models that saw no candidate and are judged, the control of promised rates."""
    overfitted_models: Annotated[int, Field(ge=0)] = 4
    """Models that train on half of the candidates alone, each again and again, the positive control; even."""
    candidates: Positive = 1000
    """Points asked about; even. Each target trains on half of them."""
    train_size: Positive = 2000
    """Points that a model trains on."""
    attacker_points: Positive = 30000
    """Points of the attacker's pool, best ten training sets or more."""
    filler: Annotated[int, Field(ge=0)] | None = None
    """Points that targets and null models train on beside the candidates are drawn from so many; null: all that are
    left."""
    classes: Classes = None
    """The classes of the data set that take part; they are numbered anew."""


class Transfer(Section):
    """The other side of the transfer: the students of mode II, the teachers of mode III.

    ``data``: null for the plan's own set; ``recipe``: null for the plan's own; ``n_frozen``: layers of the student that
    keep the teacher's weights; ``teacher``: a file of weights that every student of mode III starts from, and
    ``teacher_input``: what it was trained on, the data's own values ("raw") or torchvision's standardised channels.
    """

    data: Data | None = None
    classes: Classes = None
    """The classes of its data that take part."""
    train_size: Positive = 1000
    """Points that a model of the other side trains on."""
    n_frozen: Annotated[int, Field(ge=0)] = 0
    recipe: Recipe | None = None
    teacher: str | None = None
    teacher_input: Literal["raw", "imagenet"] | None = None


class TmiaTarget(Target):
    """A given model: the one that is asked in the plan's mode, the student in modes II and III.

    ``members`` and ``non_members``: of the training set in question, the teacher's in mode II. ``controls`` (even):
    models of the plan's own recipe that are judged beside it, so that a null result has a power.
    """

    controls: Annotated[int, Field(ge=0)] = 2


class TmiaPlan(BasePlan):
    """A whole plan of a TMIA audit. ``variants``: name → dotted fields to change, run and reported together.

    With a ``target`` that model alone is audited, and ``split.targets`` does not count.
    """

    audit: Audit = Audit()
    data: Data = Data()
    split: Split = Split()
    transfer: Transfer = Transfer()
    model: Model = Model()
    target: TmiaTarget | None = None
    recipe: Recipe = Recipe(learning_rate=3e-3, schedule="cosine", epochs=12)
    variants: dict[str, dict[str, Any]] = Field(default_factory=dict)
    compute: Compute = Compute()
    tracking: Tracking = Tracking()
    seed: Annotated[int, Field(ge=0)] = 0
    """Every random choice is derived from it."""

    @property
    def transferred(self) -> bool:
        """Is the model that is asked a student?"""
        return self.audit.mode != "I"

    @property
    def asked_targets(self) -> int:
        """Targets that the attacks are about: those that the plan trains, or the one that it is given."""
        return 1 if self.target is not None else self.split.targets

    def settings(self) -> dict[str, dict[str, Any]]:
        """Return the plan's own mode and its variants, each as a plan without variants."""
        own: dict[str, dict[str, Any]] = {self.audit.mode: {"variants": {}}}
        return own | {name: {**changes, "variants": {}} for name, changes in self.variants.items()}


def sizes(plan: TmiaPlan) -> MembershipSplit:
    """Return the sizes of the design as ``audits.tmia.design`` reads them."""
    return MembershipSplit(**plan.split.model_dump(exclude={"classes"}))
