"""The schema of a GNQ result: rows of result.json, as docs/reference/result.md explains them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from orchestrator.gnq.result.gradient_rows import (
    GradientInversionGainRow,
    GradientInversionPicture,
    GradientInversionRow,
    RecoveryCorrelation,
    RecoveryGainRow,
)
from orchestrator.gnq.result.paired import PairedRow
from orchestrator.judgement.estimate import Estimate, keys
from orchestrator.judgement.rows import Control
from orchestrator.report.metrics import Logged
from orchestrator.report.result import FinishedRun
from orchestrator.report.rows import OF_POINTS

Floats = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The strongest attack on all contributors of an arm; ``above_chance``: its whole interval lies above one half."""

    attack: str
    auc: Estimate = field(metadata=keys("auc", "low", "high"))
    above_chance: bool = False


@dataclass(frozen=True, kw_only=True)
class Onion:
    """Shares of fully exposed kept points before and after a removal; ``change`` is not there in older results."""

    points: float
    before: float | None
    after: Estimate
    change: Estimate = field(default=Estimate())
    floor: float


@dataclass(frozen=True, kw_only=True)
class ArmRow:
    """One defence, or none: how well its models fit, and what they give away; None where its training diverged.

    ``epsilon``: spent at ``delta`` as ``accountant`` counts it, an upper bound; ``epsilon_low``: the lower end that
    counting leaves, None where it has none. These two are not there in older results.
    """

    LOGGED: ClassVar[tuple[Logged, ...]] = (
        Logged("{arm}.{metric}", ("test_accuracy", "train_accuracy", "epsilon", "trained_on", "headline.auc")),
    )

    setting: str
    arm: str
    method: str
    ranking: str | None
    share: float | None
    strength: float | None
    diverged: bool = False
    epsilon: float | None
    epsilon_low: float | None = None
    delta: float | None
    accountant: str | None = None
    trained_on: float | None
    steps: int | None
    last_batch: int | None
    train_accuracy: float | None
    test_accuracy: Estimate
    headline: Headline | None
    onion: Onion | None


@dataclass(frozen=True, kw_only=True)
class EpsilonRow:
    """What an attack's guesses about pairs of points say of the ε of a private arm, from one model of each pool.

    ``right`` of ``guesses`` about the ``share`` of ``pairs`` that it is surest of; ``at_least``: the lower bound on ε
    at ``delta``, all rows of an arm and moment together at the run's level. ``moment`` null: of models that saw no
    point.
    """

    setting: str
    arm: str
    attack: str
    shadows: str
    moment: str
    share: float
    pools: int
    pairs: int
    guesses: int
    right: int
    delta: float
    at_least: float


@dataclass(frozen=True, kw_only=True)
class AreaRow:
    """How well one attack tells one group of an arm's points apart.

    ``p``: of an AUC of ½, on null models and groups that must be there; ``off``: not at ½ also after Holm's correction.
    """

    LOGGED: ClassVar[tuple[Logged, ...]] = (
        Logged("{arm}.{group}.{attack}.{shadows}.{metric}", ("auc", "auc_low", "auc_high")),
    )

    setting: str
    arm: str
    group: str
    attack: str
    shadows: str
    moment: str
    access: str
    pools: int
    targets: int
    auc: Estimate
    two_sided: Estimate
    p: float | None = None
    p_holm: float | None = None
    off: bool = False


@dataclass(frozen=True, kw_only=True)
class ComparisonRow(PairedRow):
    """One arm minus another, by one attack on one group, and what it costs in test accuracy."""

    setting: str
    arm: str
    against: str
    group: str
    attack: str
    shadows: str
    accuracy: Estimate = field(metadata=keys("accuracy_difference", "accuracy_low", "accuracy_high"))


@dataclass(frozen=True, kw_only=True)
class SeedRow:
    """One arm minus another over the seeds of a run that varies nothing else: the mean, its t interval over the seeds'
    means of ``pools`` paired differences each, and how far these means lie apart (``spread``, a standard deviation)."""

    arm: str
    against: str
    group: str
    attack: str
    shadows: str
    seeds: int
    pools: int
    difference: Estimate = field(metadata=keys("difference", "low", "high"))
    spread: float


@dataclass(frozen=True, kw_only=True)
class ScoreCorrelation:
    """Rank correlation of a score of points with an outcome that shadow models measure."""

    LOGGED: ClassVar[tuple[Logged, ...]] = (Logged("predicts.{outcome}.{score}", ("spearman",)),)

    setting: str
    score: str
    control: bool
    outcome: str
    pools: int
    spearman: Estimate = field(metadata=keys("spearman", "low", "high"))


@dataclass(frozen=True, kw_only=True)
class GainRow(PairedRow):
    """Correlation of a score made of GNQ minus that of a control."""

    setting: str
    score: str
    control: str
    outcome: str


@dataclass(frozen=True, kw_only=True)
class BinRow:
    """AUC of LiRA within one bin of a score, 1 the least exposed."""

    setting: str
    score: str
    rule: str
    bin: int
    points: float
    auc: Estimate = field(metadata=keys("auc", "low", "high"))


@dataclass(frozen=True, kw_only=True)
class LevelRow:
    """Median of a score over a target's own points, without a defence."""

    setting: str
    score: str
    median: Estimate = field(metadata=keys("median", "low", "high"))


@dataclass(frozen=True, kw_only=True)
class ExposedPointRow:
    """One of the most exposed points of all targets."""

    setting: str
    pool: int
    point_id: int
    label: str
    rank: int
    of: int
    ranked_by: str = "gnq_log"
    gnq_log: float | None
    pinv_log: float | None = None
    gnq_final: float | None
    diagonal: float | None
    bits: float | None
    squared_norm: float
    loss: float
    loss_gap: float


@dataclass(frozen=True, kw_only=True)
class TraceRow:
    """Quantiles of a score over the points, along training."""

    setting: str
    score: str
    steps: Floats
    low: Floats
    median: Floats
    high: Floats


@dataclass(frozen=True, kw_only=True)
class InversionRow:
    """How like the reconstructions from one model of an arm are to the images sought and to their class means."""

    LOGGED: ClassVar[tuple[Logged, ...]] = (Logged("{arm}.inversion.{model}.{metric}", ("ssim_image",)),)

    setting: str
    arm: str
    images: int
    model: str
    ssim_image: Estimate
    ssim_class_mean: Estimate
    mse_image: Estimate
    mse_class_mean: Estimate
    confidence: float


@dataclass(frozen=True, kw_only=True)
class InversionGainRow(PairedRow):
    """Likeness of the own model's reconstructions minus that of what they are compared with."""

    setting: str
    arm: str
    against: str
    measure: str


@dataclass(frozen=True, kw_only=True)
class PicturedArm:
    """Reconstructions from the target's and the twin's model of an arm, as ``data:`` addresses."""

    arm: str
    own: str | None
    twin: str | None


@dataclass(frozen=True, kw_only=True)
class InversionPicture:
    """The most exposed image of a pool, the mean of its class, and what each arm's models give."""

    setting: str
    pool: int
    target: int
    point_id: int
    label: str
    image: str | None
    class_mean: str | None
    arms: tuple[PicturedArm, ...]


@dataclass(frozen=True, kw_only=True)
class GnqResult(FinishedRun):
    """The content of result.json of a GNQ run; what the first versions did not have is optional."""

    KIND: ClassVar[str] = "gnq"

    arms: tuple[ArmRow, ...]
    epsilons: tuple[EpsilonRow, ...] = ()
    table: tuple[AreaRow, ...]
    comparisons: tuple[ComparisonRow, ...]
    seeds: tuple[SeedRow, ...] = ()
    correlations: tuple[ScoreCorrelation, ...]
    gains: tuple[GainRow, ...]
    bins: tuple[BinRow, ...]
    levels: tuple[LevelRow, ...] = ()
    points: tuple[ExposedPointRow, ...] = field(metadata=OF_POINTS)
    traces: tuple[TraceRow, ...]
    inversions: tuple[InversionRow, ...] = ()
    inversion_gains: tuple[InversionGainRow, ...] = ()
    inversion_pictures: tuple[InversionPicture, ...] = field(default=(), metadata=OF_POINTS)
    gradient_inversions: tuple[GradientInversionRow, ...] = ()
    gradient_inversion_gains: tuple[GradientInversionGainRow, ...] = ()
    recovery_correlations: tuple[RecoveryCorrelation, ...] = ()
    recovery_gains: tuple[RecoveryGainRow, ...] = ()
    gradient_inversion_pictures: tuple[GradientInversionPicture, ...] = field(default=(), metadata=OF_POINTS)
    controls: tuple[Control, ...] = ()
    level: float
