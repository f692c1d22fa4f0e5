"""The plan of a GNQ audit (``audit.kind: gnq``): pools of points, models that are watched, and defences.

Every default is that of the embedded default, ``orchestrator/plans/gnq-fashion14.yaml`` (a test holds them together).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from pydantic import Field

from audits.gnq.gradient_inversion.settings import GradientInversionSettings
from audits.gnq.inversion_settings import InversionSettings
from audits.gnq.private_recipe import private_recipe
from audits.training.recipe import Recipe
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.sections import Classes, Compute, Data, Model, Positive, Section, Share, Tracking

if TYPE_CHECKING:
    pass


NONE = "none"
WATCHED = Recipe(epochs=30, batch_size=50)


NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Inversion(Section):
    """Model inversion: each target's ``images`` most exposed points, by ``gnq_log``, are sought in its models.

    The other fields say how, as ``audits.gnq.inversion.InversionSettings`` does: ``steps`` of Adam at
    ``learning_rate``, weight ``tv`` of the total variation, ``starts`` with noise of deviation ``spread`` on them.
    """

    images: Positive = 1
    """Images that are sought, a target."""
    steps: Annotated[int, Field(ge=0)] = 300
    """Steps of the search."""
    learning_rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.02
    """Step size, in units of the inputs."""
    tv: NotNegative = 0.1
    """Weight of the total variation."""
    starts: Positive = 4
    """Starting images: the mean one, and others with noise on it."""
    spread: NotNegative = 0.1
    """Standard deviation of that noise, in units of the inputs."""

    @property
    def settings(self) -> InversionSettings:
        """How images are searched for."""
        return InversionSettings(**self.model_dump(exclude={"images"}))


class GradientInversion(Section):
    """Gradient inversion: ``points`` own points of each target, drawn at random, are sought from their gradients.

    ``batches``: of how many of these points a gradient is the mean, 1 for single points; ``methods``: names of
    ``METHODS``; ``looks``: at which of the target's checkpoints, counted from 0, before training, or from −1, after
    it. The other fields are those of ``GradientInversionSettings``.
    """

    points: Positive = 16
    """Points of a target that are sought."""
    batches: Annotated[tuple[Positive, ...], Field(min_length=1)] = (1, 8)
    methods: Annotated[tuple[str, ...], Field(min_length=1)] = ("dlg", "geiping")
    looks: Annotated[tuple[int, ...], Field(min_length=1)] = (0, -1)
    steps: Annotated[int, Field(ge=0)] = 300
    """Evaluations of the cost after the first one."""
    learning_rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.1
    """Step size of ``geiping``, in units of the inputs."""
    tv: NotNegative = 1e-2
    """Weight of the total variation in ``geiping``."""
    starts: Positive = 1
    """Random inputs to start from; the one that ends at least cost counts."""

    @property
    def settings(self) -> GradientInversionSettings:
        """How inputs are searched for."""
        return GradientInversionSettings(**self.model_dump(exclude={"points", "batches", "methods", "looks"}))


class Audit(Section):
    """How points are scored and which attacks judge the defences.

    ``modes``: of gradient uniqueness; ``ridge``: λ in units of the mean of ‖g‖² (diagonal: of one parameter's g²);
    ``checkpoints``: how often a training is looked at beside its beginning; ``bins``: groups of equally many points by
    exposure; ``onion``: models on either side that must all agree before a point counts as fully exposed;
    ``in_batch``: also sum what points are among the others of their batch, at every step (the ranking ``in_batch``);
    ``looks``: taken by the job that trains (together), or each by a job of its own from weights that the training keeps
    (apart), of ``look_shards`` jobs more that share out the rows of its Gram matrix;
    ``held_out``: how many models more are trained for each watched one, on halves of its points; their loss on the
    other half is the ranking ``held_out_loss``, a control; 0 for none;
    ``inversion``: which images are sought in the models, null for none;
    ``gradient_inversion``: which points are sought from their gradients, null for none.
    """

    kind: Literal["gnq"] = "gnq"
    """The kind of audit."""
    modes: Annotated[tuple[str, ...], Field(min_length=1)] = ("ridge", "diagonal")
    ridge: Annotated[float, Field(gt=0)] = 1e-3
    checkpoints: Positive = 8
    in_batch: bool = False
    looks: Literal["together", "apart"] = "together"
    look_shards: Positive = 1
    """Jobs that share out the rows of a Gram matrix where looks are taken apart."""
    attacks: Annotated[tuple[str, ...], Field(min_length=1)] = ("loss", "lira", "rmia", "shadow_posterior", "white_box")
    """The attacks that judge the defences, by name."""
    bins: Annotated[int, Field(ge=2)] = 5
    onion: Positive = 4
    level: Share = 0.95
    """Confidence of intervals, and of the tests of controls."""
    held_out: Annotated[int, Field(ge=0)] = 0
    inversion: Inversion | None = None
    gradient_inversion: GradientInversion | None = None


class Split(Section):
    """``pools`` of 2 · ``train_size`` points; of each two targets and ``shadows`` models, in twins."""

    RENAMED: ClassVar[dict[str, str]] = {"seeds": "pools"}

    pools: Positive = 5
    """Pools of points that share none; intervals are over them."""
    train_size: Annotated[int, Field(ge=4)] = 1000
    """Points that a model trains on: half of a pool."""
    shadows: Annotated[int, Field(ge=4)] = 16
    """Shadows of a pool; even."""
    test: Positive = 2000
    """Points outside of all pools, a measure of accuracy."""
    classes: Classes = None
    """The classes of the data set that take part; they are numbered anew."""


class Defence(Section):
    """One defence: ``remove`` a share of the points by a ranking, ``noise`` on their gradients, or ``dp_sgd``.

    ``strength``: the expected norm of the noise on a point's gradient, in units of the root mean square norm of all
    points' gradients along training. ``recipe``: of ``dp_sgd``, complete.
    """

    method: Literal["remove", "noise", "dp_sgd"]
    """What is done."""
    ranking: str | None = None
    """The ranking by which points are removed or get noise."""
    share: Share | None = None
    """The share of points."""
    strength: Annotated[float, Field(gt=0)] | None = None
    recipe: Recipe | None = None

    @property
    def label(self) -> str:
        """The name of the arm in tables, unless two private recipes share it; see ``arm_labels``."""
        if self.method == "dp_sgd":
            recipe = self.recipe or WATCHED
            if recipe.target_epsilon is not None:
                return f"dp-{recipe.target_epsilon:g}"
            return f"dp-noise-{recipe.noise_multiplier:g}" if recipe.noise_multiplier is not None else "dp"
        place = f"{self.ranking}-{self.share:g}" if self.share is not None else str(self.ranking)
        return place if self.method == "remove" else f"noise-{place}-{self.strength or 0:g}"


def arm_labels(defences: Sequence[Defence]) -> list[str]:
    """Return the name of each arm in tables: ``Defence.label``, and what differs where private recipes share that.

    So ``dp-8`` becomes ``dp-8-fast`` and ``dp-8-opacus``, or ``dp-8-epochs-10`` and ``dp-8-epochs-30``.
    """
    found = []
    for defence in defences:
        alike = [asdict(other.recipe) for other in defences if other.recipe and other.label == defence.label]
        own = asdict(defence.recipe) if defence.recipe else {}
        differing = [name for name, value in own.items() if any(other[name] != value for other in alike)]
        told = [own[name] if name in ("private_engine", "accountant") else f"{name}-{own[name]}" for name in differing]
        found.append("-".join([defence.label, *told]))
    return found


def private(epsilon: float) -> Defence:
    """Return DP-SGD at ε by the default recipe."""
    return Defence(method="dp_sgd", recipe=private_recipe(epsilon))


DEFENCES = (
    *(Defence(method="remove", ranking=name, share=0.2) for name in ("gnq_log", "loss_log", "random")),
    private(8.0),
)


class GnqPlan(BasePlan):
    """A whole plan of a GNQ audit."""

    audit: Audit = Audit()
    data: Data = Data()
    split: Split = Split()
    model: Model = Model()
    recipe: Recipe = WATCHED
    defences: tuple[Defence, ...] = DEFENCES
    """Defences that are compared with none."""
    compute: Compute = Compute()
    tracking: Tracking = Tracking()
    seed: Annotated[int, Field(ge=0)] = 0
    """Every random choice is derived from it."""

    @property
    def arms(self) -> dict[str, Defence | None]:
        """What is done against disclosure by label, nothing first."""
        return {NONE: None, **dict(zip(arm_labels(self.defences), self.defences, strict=True))}


READS_MODE = {
    "gnq_log": "ridge",
    "gnq_sum": "ridge",
    "gnq_final": "ridge",
    "pinv_log": "pinv",
    "pinv_sum": "pinv",
    "diagonal": "diagonal",
    "in_batch": "ridge",
}
"""Rankings made of gradient uniqueness, and the mode that each reads."""


FIRST = ("gnq_log", "pinv_log", "diagonal")
"""Rankings that speak of exposure, and of GNQ altogether: the first that the plan's modes allow."""
