"""The schema of a GNQ audit of a given model: rows of result.json, as docs/reference/result.md explains them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from orchestrator.gnq.given.plan import KIND
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.rows import Control
from orchestrator.report.metrics import Logged
from orchestrator.report.result import FinishedRun
from orchestrator.report.rows import OF_POINTS, counted


@dataclass(frozen=True, kw_only=True)
class GroupRow:
    """The scored points of one group, ``members`` or ``controls``.

    ``exposed``: share of leverage at or above the plan's limit, ``exposed_points`` their number; ``uniqueness`` is the
    median with the 10 % and 90 % points of the distribution, ``highest`` the largest; ``bits``, ``accuracy``: means;
    ``loss``: median; ``vanished``: share of points whose gradient is below the rounding of the weights; ``copied``:
    points that equal another one of their group.
    """

    LOGGED: ClassVar[tuple[Logged, ...]] = (
        Logged("{group}.{metric}", ("exposed", "uniqueness", "bits", "loss", "accuracy", "vanished")),
    )

    setting: str
    group: str
    points: int
    of: int
    exposed: float
    exposed_points: int
    uniqueness: Estimate
    highest: float | None = field(metadata=OF_POINTS)
    bits: float
    loss: float
    accuracy: float
    vanished: float
    copied: int


@dataclass(frozen=True, kw_only=True)
class SeparationRow:
    """How far a score tells members from controls: the AUC, with DeLong's interval over these points."""

    LOGGED: ClassVar[tuple[Logged, ...]] = (Logged("separation.{score}.{metric}", ("auc",)),)

    setting: str
    score: str
    auc: Estimate


@dataclass(frozen=True, kw_only=True)
class ClassRow:
    """The scored members of one class: as in ``GroupRow``."""

    setting: str
    label: str
    points: int
    exposed: float
    exposed_points: int
    uniqueness: Estimate
    bits: float
    loss: float
    accuracy: float


@dataclass(frozen=True, kw_only=True)
class PointRow:
    """One of the most exposed members."""

    setting: str
    point_id: int
    label: str
    rank: int
    uniqueness: float
    leverage: float
    log_uniqueness: float
    bits: float
    loss: float
    squared_norm: float
    correct: bool
    copied: bool


@dataclass(frozen=True, kw_only=True)
class TargetRow:
    """What was audited: files and sha256 of its weights (names, shapes, values) and of the ids of its members."""

    setting: str
    weights: tuple[str, ...]
    digests: tuple[str, ...]
    members: str
    members_digest: str
    parameters: int


@dataclass(frozen=True, kw_only=True)
class GivenResult(FinishedRun):
    """The content of result.json of a GNQ audit of a given model."""

    KIND: ClassVar[str] = KIND

    table: tuple[GroupRow, ...]
    separation: tuple[SeparationRow, ...] = ()
    classes: tuple[ClassRow, ...] = field(default=(), metadata=counted("points"))
    points: tuple[PointRow, ...] = field(default=(), metadata=OF_POINTS)
    targets: tuple[TargetRow, ...] = ()
    controls: tuple[Control, ...] = ()
    leverage: float = 0.75
    level: float = 0.95
