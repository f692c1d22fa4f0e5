"""The schema of a membership result: rows of result.json, as docs/reference/result.md explains them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

from orchestrator.judgement.estimate import Estimate, Span
from orchestrator.judgement.rows import Control
from orchestrator.report.best import BestRow
from orchestrator.report.metrics import Logged
from orchestrator.report.result import FinishedRun, look_up, of_setting
from orchestrator.report.rows import OF_POINTS
from orchestrator.report.words import access_level

RATES = ("tpr", "tpr_low", "tpr_high", "found_fpr", "found_fpr_low", "found_fpr_high", "null_fpr", "roc_tpr")


@dataclass(frozen=True, kw_only=True)
class MiaRow:
    """One attack at one promised false-positive rate.

    ``found_fpr``: of points that a target did not train on; ``null_fpr``: of models that saw no point of the pool.
    ``…_p``: of "the rate is at most the promised one", ``…_off``: above it also after Holm's correction over the cells
    of the run; ``void``: one of the two is off, so that TPR, what calls are worth and p-values must not be quoted.
    ``worth_1``, ``worth_10``: the share of calls that are right where 1 % or 10 % of the points asked about are members
    """

    LOGGED: ClassVar[tuple[Logged, ...]] = (
        Logged("{attack}.{metric}", ("auc", "auc_low", "auc_high", "auc_p", "auc_p_holm")),
        Logged("{attack}.{promised_fpr:g}.{metric}", RATES),
    )

    setting: str
    attack: str
    access: str
    auc: Estimate
    auc_bootstrap: Span
    auc_pooled: float
    auc_p: float
    auc_p_holm: float
    above_chance: bool
    promised_fpr: float
    tpr: Estimate
    tpr_exact: Span
    found_fpr: Estimate
    found_fpr_exact: Span
    null_fpr: Estimate
    roc_tpr: float | None
    worth_1: Estimate
    worth_10: Estimate
    queries_per_point: float
    pools: int
    targets: int
    null_models: int
    members: int
    non_members: int
    found_fpr_p: float
    found_fpr_p_holm: float | None = None
    found_fpr_off: bool = False
    found_fpr_below_p: float
    null_fpr_p: float | None
    null_fpr_p_holm: float | None = None
    null_fpr_off: bool = False
    void: bool = False


@dataclass(frozen=True, kw_only=True)
class CanaryRow:
    """The positive control: how well an attack tells canaries, which have a wrong label, in from canaries out."""

    LOGGED: ClassVar[tuple[Logged, ...]] = (Logged("{attack}.canaries.{metric}", ("auc",)),)

    setting: str
    attack: str
    access: str
    canaries: int
    auc: Estimate


@dataclass(frozen=True, kw_only=True)
class ShadowRow:
    """Power of an attack with some of the shadows, at the first promised rate; ``void``: its TPR must not be quoted."""

    LOGGED: ClassVar[tuple[Logged, ...]] = (Logged("{attack}.shadows.{shadows}.{metric}", ("auc", "tpr", "found_fpr")),)

    setting: str
    attack: str
    shadows: int
    promised_fpr: float
    auc: Estimate
    tpr: Estimate
    found_fpr: Estimate
    void: bool = False


@dataclass(frozen=True, kw_only=True)
class EpsilonRow:
    """What guesses about pairs of points rule out: training is not (ε, ``delta``)-private for ε below ``epsilon``.

    ``share`` of the pairs is guessed about; ``right`` of ``guesses`` over all pools, of the first target of each.
    ``null_right``, ``null_epsilon``: the same of models that saw no point, whose bound must be 0.
    """

    LOGGED: ClassVar[tuple[Logged, ...]] = (Logged("{attack}.epsilon.{share:g}", ("epsilon",)),)

    setting: str
    attack: str
    access: str
    share: float
    pairs: int
    guesses: int
    right: int
    delta: float
    epsilon: float
    null_right: int | None
    null_epsilon: float | None


@dataclass(frozen=True, kw_only=True)
class DiscoveryRow:
    """Single points that false discovery rate control finds by one attack; ``void``: by p-values that do not hold."""

    LOGGED: ClassVar[tuple[Logged, ...]] = (Logged("{attack}.{metric}", ("discoveries", "fdp", "power")),)

    setting: str
    attack: str
    access: str
    claimed_fdr: float
    discoveries: int
    false: int
    fdp: Estimate
    power: Estimate
    void: bool = False


@dataclass(frozen=True, kw_only=True)
class ExposedPoint:
    """A member of which the judge is surest; a discovery where ``q`` is at most ``audit.fdr``.

    ``recognised``: the share of the shadows that had the point in which it lies above 99 % of non-members.
    """

    setting: str
    target: int
    point_id: int
    label: int
    score: float
    p: float
    q: float
    recognised: float | None
    void: bool = False


@dataclass(frozen=True, kw_only=True)
class OwnRow:
    """The positive control beside a given target: how an attack judges two models of the plan's own recipe.

    Rates are at the first promised one.
    """

    LOGGED: ClassVar[tuple[Logged, ...]] = (Logged("{attack}.own.{metric}", ("auc", "tpr", "found_fpr")),)

    setting: str
    attack: str
    access: str
    auc: Estimate
    promised_fpr: float
    tpr: Estimate
    found_fpr: Estimate


@dataclass(frozen=True, kw_only=True)
class BlindRow:
    """How well a given target's members are told from non-members without the model: by inputs, labels and shadows.

    ``auc``: of the classifier ``by`` which most is told; its interval takes the fits for fixed. ``p``: of as much, by
    whichever classifier, where chance draws the members. ``differ``: it is at most .025, so that what attacks find may
    be no membership.
    """

    LOGGED: ClassVar[tuple[Logged, ...]] = (Logged("blind.{metric}", ("auc",)),)

    setting: str
    points: int
    auc: Estimate
    p: float
    by: str
    differ: bool


@dataclass(frozen=True, kw_only=True)
class FitRow:
    """Mean accuracies of targets, shadows or own models, and by how much training accuracy exceeds the other."""

    LOGGED: ClassVar[tuple[Logged, ...]] = (Logged("{group}.{metric}", ("train_accuracy", "test_accuracy", "gap")),)

    setting: str
    group: str
    models: int
    train_accuracy: float
    test_accuracy: float
    gap: float


@dataclass(frozen=True, kw_only=True)
class MiaResult(FinishedRun):
    """The content of result.json of a membership run."""

    KIND: ClassVar[str] = "mia"

    table: tuple[MiaRow, ...]
    canaries: tuple[CanaryRow, ...]
    shadows: tuple[ShadowRow, ...]
    epsilons: tuple[EpsilonRow, ...]
    discoveries: tuple[DiscoveryRow, ...]
    exposed: tuple[ExposedPoint, ...] = field(metadata=OF_POINTS)
    fit: tuple[FitRow, ...]
    own: tuple[OwnRow, ...] = ()
    blind: tuple[BlindRow, ...] = ()
    best: tuple[BestRow, ...] = ()
    controls: tuple[Control, ...] = ()
    judge: str
    level: float
    expected_misses: float

    @property
    def given(self) -> bool:
        """Whether the target was given, not trained."""
        return look_up(self.plan, "target") is not None

    @property
    def units(self) -> str:
        """What makes intervals wide where points are told apart: models that disagree, or a lack of points."""
        return "shadows" if self.given else "pools" if self.rows(self.main_setting)[0].pools > 1 else "points"

    @cached_property
    def rates(self) -> list[float]:
        """Promised false-positive rates of the main setting, in the plan's order."""
        return list(dict.fromkeys(row.promised_fpr for row in of_setting(self.table, self.main_setting)))

    def rows(self, setting: str, rate: float | None = None) -> list[MiaRow]:
        """Return the rows of a setting at a promised rate (the first), weakest access first."""
        chosen = [row for row in of_setting(self.table, setting) if row.promised_fpr == (rate or self.rates[0])]
        return sorted(chosen, key=lambda row: access_level(row.access))
