"""The schema of what gradient inversion adds to a GNQ result, as docs/reference/result.md explains it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from orchestrator.gnq.result.paired import PairedRow
from orchestrator.judgement.estimate import Estimate, keys
from orchestrator.report.metrics import Logged


@dataclass(frozen=True, kw_only=True)
class GradientInversionRow:
    """How like reconstructions from gradients are to the points: from their own, or from what controls are given."""

    LOGGED: ClassVar[tuple[Logged, ...]] = (
        Logged("gradient_inversion.{step}.{batch}.{method}.{given}.{metric}", ("ssim", "mse")),
    )

    setting: str
    step: int
    batch: int
    method: str
    given: str
    points: int
    ssim: Estimate
    mse: Estimate
    labels_right: float | None


@dataclass(frozen=True, kw_only=True)
class GradientInversionGainRow(PairedRow):
    """Likeness by a point's own gradient minus that of a control."""

    setting: str
    step: int
    batch: int
    method: str
    against: str
    measure: str


@dataclass(frozen=True, kw_only=True)
class RecoveryCorrelation:
    """Rank correlation of a score of points at a checkpoint with how close what is found comes to them."""

    LOGGED: ClassVar[tuple[Logged, ...]] = (
        Logged("gradient_inversion.{step}.{batch}.{method}.{given}.{outcome}.{score}", ("spearman",)),
    )

    setting: str
    step: int
    batch: int
    method: str
    given: str
    score: str
    outcome: str
    pools: int
    spearman: Estimate = field(metadata=keys("spearman", "low", "high"))


@dataclass(frozen=True, kw_only=True)
class RecoveryGainRow(PairedRow):
    """Correlation of GNQ with closeness minus that of a control score, or minus that with a control's images."""

    setting: str
    step: int
    batch: int
    method: str
    score: str
    control: str
    given: str
    outcome: str


@dataclass(frozen=True, kw_only=True)
class PicturedSearch:
    """What a search gives from a point's own gradient and from the control's, as ``data:`` addresses."""

    step: int
    batch: int
    method: str
    own: str | None
    other: str | None


@dataclass(frozen=True, kw_only=True)
class GradientInversionPicture:
    """A point of a pool's first target, the mean of its class, and what each search gives."""

    setting: str
    pool: int
    target: int
    point_id: int
    label: str
    image: str | None
    class_mean: str | None
    searches: tuple[PicturedSearch, ...]
