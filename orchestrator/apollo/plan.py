"""The plan: one YAML file that says everything about an audit.

``load_plan`` is the way in; it raises ``PlanProblems`` with one line per problem. Every default is that of the embedded
default audit, ``orchestrator/plans/apollo-fashion14.yaml`` (a test holds the two together).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_serializer

from audits.own.permission import is_own
from audits.training.recipe import Recipe
from audits.unlearning import make_unlearner
from orchestrator.apollo.split import Split
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.files import DEFAULT_PLAN, shipped_plan
from orchestrator.engine.plan.sections import Compute, Data, Model, Positive, Section, Share, Tracking
from orchestrator.engine.plan.target import Target

if TYPE_CHECKING:
    from audits.unlearning import Unlearner


CONTROLS = ("identity", "retrain")
"""Methods whose tables show whether attacks can see anything, and whether they see anything else than unlearning."""


def control_of(label: str, method: str | None) -> str | None:
    """Return the control that a row is about, None of other methods: the method decides, whatever ``as`` calls it.

    ``method``: None where it is the ``label`` itself.
    """
    found = method or label
    return found if found in CONTROLS else None


class Search(Section):
    """Apollo's search: weights α and β, radius step ε in the ``norm``, steps T, step size, shadows used."""

    alpha: Annotated[float, Field(ge=0)] = 1.0
    """Weight α of the shadows that had the point."""
    beta: Annotated[float, Field(ge=0)] = 4.0
    """Weight β of the shadows that never saw it."""
    epsilon: Annotated[float, Field(gt=0)] = 0.1
    """Width ε of a shell: the radius grows by it with each step, in units of the inputs."""
    steps: Positive = 5
    """Steps T; a candidate costs 1 + 4·T labels."""
    learning_rate: Annotated[float, Field(gt=0)] = 0.1
    """Size of the gradient step before the projection."""
    norm: Literal["l2", "linf"] = "l2"
    """Norm by which shells are measured; the paper's is l2."""
    shadows: Annotated[int, Field(ge=4)] | None = None
    """Shadows of a set that draw the walks, null for all."""


class Audit(Section):
    """Which attacks run, how they decide, and what is promised: thresholds are fixed on shadows at each ``fpr``.

    ``population``: other points that attacks such as RMIA compare a candidate with, at most; ``queries``: labels that
    an adaptive label-only attack may ask per candidate (null: as many as apollo asks); ``fdr``: the share of false
    discoveries allowed in the list of exposed points; ``radii``: estimate at which radii Apollo's theorems expect
    labels to flip or to stay (reads the targets' weights and trains each once more without its forget set; no attack
    does); ``disclosure``: watch the targets train again and say how unique the gradients of the forget requests were,
    before anything was unlearned (no attack reads it either).
    """

    kind: Literal["apollo"] = "apollo"
    """The kind of audit."""
    attacks: Annotated[tuple[str, ...], Field(min_length=1)] = (
        "apollo",
        "apollo_offline",
        "apollo_no_fit",
        "apollo_under",
        "apollo_over",
        "apollo_ladder",
        "random_directions",
        "single_query",
        "label_gap",
        "u_lira",
        "rmia",
        "loss_threshold",
    )
    """The attacks that run, by name."""
    search: Search = Search()
    population: Positive = 200
    queries: Positive | None = None
    fdr: Share = 0.1
    radii: bool = False
    disclosure: bool = False
    fpr: Annotated[tuple[Share, ...], Field(min_length=1)] = (0.05,)
    """Promised false-positive rates: decisions are made at each."""
    level: Share = 0.95
    """Confidence of intervals, and of the tests of controls."""
    bootstrap: Annotated[int, Field(ge=20)] = 2000
    """Draws of the bootstrap."""
    permutations: Annotated[int, Field(ge=20)] = 2000
    """Permutations of membership, for p-values and bands."""

    @property
    def query_budget(self) -> int:
        """Labels per candidate of an adaptive label-only attack: ``queries``, else those of apollo, 1 + 4·T."""
        return self.queries or 1 + 4 * self.search.steps


class UnlearningMethod(BaseModel):
    """One entry of ``unlearning``: a method of the registry, its settings, and ``as``, a name of its own."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    method: Annotated[str, Field(min_length=1)]
    """The method, by name. Its settings stand beside it in the same entry."""
    given_label: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")] | None = Field(default=None, alias="as")
    """A name of its own, for tables: needed where a method stands there twice. A control stays one."""

    @property
    def label(self) -> str:
        """The name in tables: ``as`` if given, else the method; of code, the last part of its name."""
        return self.given_label or (self.method.rpartition(":")[2] if is_own(self.method) else self.method)

    @property
    def settings(self) -> dict[str, Any]:
        """The method's settings."""
        return dict(self.model_extra or {})

    def with_settings(self, settings: Mapping[str, Any]) -> UnlearningMethod:
        """Return the entry with other settings."""
        given = {"as": self.given_label} if self.given_label else {}
        return type(self).model_validate({"method": self.method, **given, **settings})

    def unlearner(self) -> Unlearner:
        """Return the settings as the registry's frozen dataclass."""
        return make_unlearner(self.method, self.settings)

    @model_serializer
    def flat(self) -> dict[str, Any]:
        """Return the entry as a plan writes it."""
        return {"method": self.method, **({"as": self.given_label} if self.given_label else {}), **self.settings}


class ApolloTarget(Target):
    """A given unlearned model: it is neither trained nor unlearned here.

    ``members``: the points that it was trained on before anything was unlearned; ``forget``: those of them that were
    unlearned; ``original``: the model before unlearning, which is the control ``identity`` then: attacks that know
    nothing of it must find the deleted points there, or these were never learnt. ``around``: what shadows train on
    beside candidates: ``non_members``, points that the target never saw (Apollo's attacker), or ``retained``, the
    target's own members, as an auditor can who has them (``audits.apollo.design.given``).
    """

    POINTS: ClassVar[tuple[str, ...]] = ("members", "non_members", "forget")
    MODELS: ClassVar[tuple[str, ...]] = ("weights", "original")

    forget: Annotated[str, Field(min_length=1)]
    original: Annotated[str, Field(min_length=1)] | None = None
    around: Literal["non_members", "retained"] = "non_members"


def default_unlearning() -> tuple[UnlearningMethod, ...]:
    """Return the methods of the embedded default, with the settings that were tuned for it."""
    return tuple(UnlearningMethod.model_validate(entry) for entry in shipped_plan(DEFAULT_PLAN)["unlearning"])


class ApolloPlan(BasePlan):
    """A whole plan of Apollo's audit, made by ``load_plan`` or ``plan_from``, which check names and combinations."""

    audit: Audit = Audit()
    data: Data = Data()
    split: Split = Split()
    target: ApolloTarget | None = None
    model: Model = Model()
    recipe: Recipe = Recipe()
    shadow_model: Model | None = None
    """Architecture of the shadows, null for that of the targets."""
    shadow_recipe: Recipe | None = None
    """Recipe of the shadows, complete, null for that of the targets."""
    unlearning: Annotated[tuple[UnlearningMethod, ...], Field(min_length=1)] = Field(default_factory=default_unlearning)
    """Methods that are audited, each with its settings; the controls are added if they are missing."""
    compute: Compute = Compute()
    tracking: Tracking = Tracking()
    seed: Annotated[int, Field(ge=0)] = 0
    """Every random choice is derived from it."""

    _untuned: frozenset[str] = PrivateAttr(default=frozenset())

    @property
    def nulls(self) -> int:
        """Never-seen candidates over all targets: what a false-positive rate is measured on."""
        return (1 if self.target else self.split.targets) * self.split.candidates.unseen

    def changed(self, values: Mapping[str, Any]) -> ApolloPlan:
        """Return the plan with other values, checked again; methods stay marked as untuned."""
        plan = super().changed(values)
        plan._untuned |= self._untuned
        return plan
