"""The schema of a TMIA result: rows of result.json, as docs/reference/result.md explains them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from orchestrator.judgement.estimate import Estimate, Span
from orchestrator.judgement.rows import Control
from orchestrator.report.metrics import Logged
from orchestrator.report.result import FinishedRun, SettingRow
from orchestrator.report.rows import OF_POINTS

Floats = tuple[float, ...]
GAP = 0.05
"""Train minus test accuracy from which a model counts as over-fitted (spec of the audit: five points)."""


@dataclass(frozen=True, kw_only=True)
class TmiaCell:
    """One attack on one selection of candidates; 0/0 is None.

    ``fpr_p``, ``null_fpr_p``: of "the rate is at most β" (``controls.judged_cells``); ``…_off``: above it after Holm.
    ``void``: the promise is broken, so that precision, coverage and called points must not be quoted;
    ``above_chance``: it is not, and the whole interval of precision lies above ``chance``.
    """

    LOGGED: ClassVar[tuple[Logged, ...]] = (
        Logged(
            "{selection}.{attack}.{metric}",
            (
                *(f"{name}{end}" for name in ("precision", "coverage", "fpr") for end in Estimate.SUFFIXES),
                *("auc", "null_fpr", "candidates", "queries_per_point"),
            ),
        ),
    )

    setting: str
    mode: str
    selection: str
    attack: str
    access: str
    beta: float
    attained: float | None
    candidates: int
    targets: int
    true_positives: int
    false_positives: int
    members: int
    non_members: int
    expected_false_positives: float | None
    precision: Estimate
    precision_t: Span
    coverage: Estimate
    coverage_t: Span
    fpr: Estimate
    fpr_t: Span
    auc: Estimate
    null_models: int
    null_candidates: int
    null_fpr: Estimate
    null_false_positives: int
    null_pairs: int
    null_expected: float | None
    queries_per_point: float
    failed: int
    fpr_p: float | None = None
    fpr_p_holm: float | None = None
    fpr_off: bool = False
    null_fpr_p: float | None = None
    null_fpr_p_holm: float | None = None
    null_fpr_off: bool = False
    void: bool = False
    above_chance: bool = False

    @property
    def breaks(self) -> bool:
        """Whether the promise is broken: on null models."""
        return self.null_fpr_off

    @property
    def clusters(self) -> int:
        """How many of the scarcest thing resampled the interval of ``fpr`` rests on: targets."""
        return self.targets

    @property
    def pairs(self) -> int:
        """Pairs of a candidate and a target, of either kind."""
        return self.members + self.non_members

    @property
    def chance(self) -> float | None:
        """The precision of answering at random: the share of member pairs among the attacked ones."""
        return self.members / self.pairs if self.pairs else None

    @property
    def promised(self) -> float | None:
        """The false-positive rate that the attack promises, β; None for attacks that promise none."""
        return None if self.expected_false_positives is None else self.beta


@dataclass(frozen=True, kw_only=True)
class FitRow:
    """How well a group of models fits, means over models."""

    LOGGED: ClassVar[tuple[Logged, ...]] = (
        Logged("fit.{side}.{group}.{metric}", ("train_accuracy", "test_accuracy", "gap")),
    )

    setting: str
    side: str
    group: str
    models: int
    train_accuracy: float
    test_accuracy: float | None
    gap: float | None
    flag: str


@dataclass(frozen=True, kw_only=True)
class OverfittedRow:
    """The positive control: how well an attack tells members of models that are trained on nothing else, repeatedly.

    Mean of the AUC within each model, without a selection; its interval is over the models.
    """

    LOGGED: ClassVar[tuple[Logged, ...]] = (Logged("{attack}.overfitted.{metric}", ("auc",)),)

    setting: str
    attack: str
    access: str
    models: int
    candidates: int
    auc: Estimate


@dataclass(frozen=True, kw_only=True)
class SelectionRow:
    """By which rule a selector chose how many candidates, and how many of these were asked with labels only."""

    setting: str
    selector: str
    rule: str
    threshold: float | None
    chosen: int
    asked: int


@dataclass(frozen=True, kw_only=True)
class Confidences:
    """Signed distances and the confidence at each."""

    distance: Floats
    confidence: Floats


@dataclass(frozen=True, kw_only=True)
class ReconstructionRow:
    """The map from distance to confidence that was fitted, as a curve, and a sample of the pairs it was fitted to."""

    setting: str
    map: str
    pairs: int
    dropped: int
    rmse: float
    source: str
    curve: Confidences
    points: Confidences = field(metadata=OF_POINTS)


@dataclass(frozen=True, kw_only=True)
class RecognisedPoint:
    """A candidate that a label-only attack finds among the targets that trained on it."""

    setting: str
    attack: str
    selector: str
    point_id: int
    label: str
    hits: int
    targets: int
    false_calls: int


@dataclass(frozen=True, kw_only=True)
class TmiaSetting(SettingRow):
    """A setting and its attack mode."""

    mode: str


@dataclass(frozen=True, kw_only=True)
class TmiaResult(FinishedRun):
    """The content of result.json of a TMIA run."""

    KIND: ClassVar[str] = "tmia"

    settings: tuple[TmiaSetting, ...]
    table: tuple[TmiaCell, ...]
    fit: tuple[FitRow, ...]
    selections: tuple[SelectionRow, ...]
    reconstruction: tuple[ReconstructionRow, ...]
    exposed: tuple[RecognisedPoint, ...] = field(metadata=OF_POINTS)
    level: float
    overfitted: tuple[OverfittedRow, ...] = ()
    controls: tuple[Control, ...] = ()

    @cached_property
    def bare_settings(self) -> list[SettingRow]:
        """Settings with dotted changes, groups spread into fields, without the variants that a sweep empties."""
        found = []
        for entry in self.settings:
            changes = [spread(path, value) for path, value in entry.overrides.items() if path != "variants"]
            own = {path: value for part in changes for path, value in part.items()}
            found.append(SettingRow(setting=entry.setting, overrides=own))
        return found


def spread(path: str, value: Any) -> dict[str, Any]:
    """Return the fields of a group by their dotted paths; a field by itself."""
    if isinstance(value, Mapping):
        return {name: leaf for key, part in value.items() for name, leaf in spread(f"{path}.{key}", part).items()}
    return {path: value}
