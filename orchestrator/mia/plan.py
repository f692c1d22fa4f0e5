"""The plan of a membership audit (``audit.kind: mia``): pools of points, targets, shadows and null models of each.

Every default is that of the embedded default, ``orchestrator/plans/mia-fashion14.yaml`` (a test holds them together).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from audits.training.recipe import Recipe
from orchestrator.engine.plan.base import BasePlan
from orchestrator.engine.plan.sections import Classes, Compute, Data, Model, Positive, Section, Share, Tracking
from orchestrator.engine.plan.target import Target

TRAINED = Recipe(epochs=30, batch_size=50)
ATTACKS = (
    "lira",
    "lira_offline",
    "rmia",
    "rmia_offline",
    "qmia",
    "one_shadow",
    "loss",
    "label_gap",
    "boundary_distance",
)
NULLS_NEEDED = 10
"""Expected false positives below which a promised rate cannot be told from its neighbours."""
PRIORS = (0.01, 0.1)
"""Shares of members among the points that somebody asks about, for which a call's worth is told."""


class HopSkipJump(Section):
    """Attacks that ask hundreds of labels a point ask about ``points`` of each pool, and as many known non-members.

    ``schedule``: of the search (``audits.queries.hop_skip_jump``).
    """

    points: Annotated[int, Field(ge=2)] = 200
    """Points of each pool that are asked about."""
    schedule: Literal["rank", "plain", "absolute"] = "rank"


class Audit(Section):
    """Which attacks run, and at which promised false-positive rates they decide.

    ``fdr``: the share of false discoveries allowed in the list of exposed points, by p-values of ``judge``;
    ``delta``: of the (ε, δ) that the guesses about pairs are held against.
    """

    kind: Literal["mia"] = "mia"
    """The kind of audit."""
    attacks: Annotated[tuple[str, ...], Field(min_length=1)] = ATTACKS
    """The attacks that run, by name."""
    fpr: Annotated[tuple[Share, ...], Field(min_length=1)] = (0.01, 0.05)
    """Promised false-positive rates: decisions are made at each. The gate looks at the first one."""
    judge: str = "rmia"
    """The attack of the exposure list and of the verdict."""
    fdr: Share = 0.1
    delta: Annotated[float, Field(ge=0, lt=1)] = 1e-5
    hop_skip_jump: HopSkipJump = HopSkipJump()
    level: Share = 0.95
    """Confidence of intervals, and of the tests of controls."""
    bootstrap: Annotated[int, Field(ge=20)] = 2000
    """Draws of the bootstrap."""
    permutations: Annotated[int, Field(ge=20)] = 2000
    """Permutations of membership, for p-values and bands."""


class Split(Section):
    """``pools`` of 2 · ``train_size`` points that share none; of each two targets and ``shadows`` models, in twins.

    ``strangers``: shadows of other pools, and ``null_models``: their targets, that saw no point of the pool. Both cost
    no training; the former are in the attacker's null, the latter are judged, to see whether promised rates hold.
    ``canaries``: points of each pool with a wrong label, the positive control; ``test``: points outside of all pools,
    known non-members for the attacker and a measure of accuracy. With a target there is one pool, of up to
    ``train_size`` of its members and as many known non-members; all models train on as many points as it did, and there
    are no models of other pools and no canaries.
    """

    pools: Positive = 6
    """Pools of points that share none; intervals are over them."""
    train_size: Annotated[int, Field(ge=4)] = 1000
    """Points that a model trains on: half of a pool."""
    shadows: Annotated[int, Field(ge=0)] = 16
    """Shadows of a pool; even."""
    strangers: Annotated[int, Field(ge=0)] = 10
    null_models: Annotated[int, Field(ge=0)] = 4
    canaries: Annotated[int, Field(ge=0)] = 20
    test: Annotated[int, Field(ge=4)] = 2000
    classes: Classes = None
    """The classes of the data set that take part; they are numbered anew."""


class GivenTarget(Target):
    """A given model, which is audited instead of models that the plan trains (``audits.mia.given_pool``).

    ``by_chance``: that members were drawn at random from members and non-members together, which no file can show; a
    lower bound on ε is told only then.
    """

    by_chance: bool = False


class MiaPlan(BasePlan):
    """A whole plan of a membership audit."""

    audit: Audit = Audit()
    data: Data = Data()
    target: GivenTarget | None = None
    split: Split = Split()
    model: Model = Model()
    recipe: Recipe = TRAINED
    shadow_model: Model | None = None
    """Architecture of the shadows, null for that of the targets."""
    shadow_recipe: Recipe | None = None
    """Recipe of the shadows, complete, null for that of the targets."""
    compute: Compute = Compute()
    tracking: Tracking = Tracking()
    seed: Annotated[int, Field(ge=0)] = 0
    """Every random choice is derived from it."""

    @property
    def judge(self) -> str:
        """The attack of the exposure list and of the verdict: ``audit.judge`` where it runs, else the first."""
        return self.audit.judge if self.audit.judge in self.audit.attacks else self.audit.attacks[0]

    @property
    def non_members(self) -> int:
        """Points of all pools that a target did not train on, each once: what promised rates are resolved by.

        With a given target it is at most so many.
        """
        if self.target is not None:
            return self.split.train_size
        return self.split.pools * (2 * self.split.train_size - self.split.canaries)
