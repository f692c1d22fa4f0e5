"""The schema of an Apollo result: rows of result.json, as docs/reference/result.md explains them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from orchestrator.apollo.plan import control_of
from orchestrator.apollo.score_table import POOLED
from orchestrator.judgement.estimate import Estimate, Span, keys
from orchestrator.judgement.rows import Control
from orchestrator.report.best import BestRow
from orchestrator.report.metrics import Logged
from orchestrator.report.result import FinishedRun, look_up
from orchestrator.report.rows import OF_POINTS, SPARSE, counted

Floats = tuple[float, ...]
Matrix = tuple[Floats, ...]
Standing = Literal["held", "off chance", "no power"]
RATES = ("tpr", "tpr_low", "tpr_high", "found_fpr", "found_fpr_low", "found_fpr_high", "roc_tpr")


@dataclass(frozen=True, kw_only=True)
class AttackRow:
    """One attack on one unlearning method at one promised false-positive rate.

    ``found_fpr_p``: of "the rate is at most the promised one"; ``…_off``: above it also after Holm's correction;
    ``found_fpr_below_p``, ``found_fpr_below``: the same of a rate below it, which is on the careful side; ``void``: the
    promise is broken, so that TPR and what else rests on it must not be quoted (``void.void_cells``);
    ``control``: of rows about ``retrain`` and ``identity``, whether the control held, or how not
    (``controls.judged_rows``).
    ``method``: the unlearning method, where the plan gives it another name (``as``), the ``unlearner`` here.
    """

    LOGGED: ClassVar[tuple[Logged, ...]] = (
        Logged(
            "{unlearner}.{attack}.{metric}",
            ("auc", "auc_low", "auc_high", "auc_p", "auc_p_holm", "queries_per_point", *RATES),
        ),
    )

    setting: str
    unlearner: str
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
    roc_tpr: float | None
    queries_per_point: float
    targets: int
    forget: int
    unseen: int
    found_fpr_p: float | None = None
    found_fpr_p_holm: float | None = None
    found_fpr_off: bool = False
    found_fpr_below_p: float | None = None
    found_fpr_below: bool = False
    void: bool = False
    control: Standing | None = None
    control_p_holm: float | None = None
    method: str | None = field(default=None, metadata=SPARSE)

    @property
    def control_of(self) -> str | None:
        """The control that the row is about, by its method; None of other methods."""
        return control_of(self.unlearner, self.method)


@dataclass(frozen=True, kw_only=True)
class UtilityRow:
    """Accuracies of one target after one unlearning method, and how far its weights moved.

    Of a given model nobody knows the seconds, and without its original not the distance.
    """

    LOGGED: ClassVar[tuple[Logged, ...]] = (
        Logged(
            "{unlearner}.utility.{metric}",
            ("retain_accuracy", "forget_accuracy", "test_accuracy", "distance", "seconds"),
        ),
    )

    unlearner: str
    target: int
    retain_accuracy: float
    forget_accuracy: float
    test_accuracy: float
    test_accuracy_before: float | None = None
    distance: float | None = None
    norm: float | None = None
    seconds: float | None = None
    flag: str


@dataclass(frozen=True, kw_only=True)
class SettingUtilityRow:
    """Utility of one unlearning method in one setting, means over targets."""

    setting: str
    unlearner: str
    targets: int | None = None
    retain_accuracy: float | None = None
    forget_accuracy: float | None = None
    test_accuracy: float
    test_accuracy_before: float | None = None
    distance: float | None = None


@dataclass(frozen=True, kw_only=True)
class DiscoveryRow:
    """Single points that false discovery rate control finds by one attack; ``void``: by p-values that do not hold."""

    LOGGED: ClassVar[tuple[Logged, ...]] = (Logged("{unlearner}.{attack}.{metric}", ("discoveries", "fdp", "power")),)

    setting: str
    unlearner: str
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
    """A deleted point that is still detectable, in one target; ``void``: by p-values that do not hold."""

    unlearner: str
    target: int
    point_id: int
    label: int
    score: float
    p: float
    q: float
    void: bool = False


@dataclass(frozen=True, kw_only=True)
class ExposureList:
    """Deleted points that one attack finds one by one, clearest first."""

    setting: str
    attack: str
    fdr: float
    dependence: str
    points: tuple[ExposedPoint, ...] = field(metadata=OF_POINTS)


@dataclass(frozen=True, kw_only=True)
class PairRow:
    """How well two of the three groups are told apart."""

    groups: tuple[str, str]
    auc: Estimate


@dataclass(frozen=True, kw_only=True)
class ThreeWayRow:
    """Decisions between forgotten, retained and unseen points; matrices have the truth in rows."""

    setting: str
    unlearner: str
    attack: str
    access: str
    groups: tuple[str, ...]
    points: tuple[int, ...]
    confusion: Matrix
    confusion_low: Matrix
    confusion_high: Matrix
    balanced_accuracy: Estimate
    pairs: tuple[PairRow, ...]


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """Rates over radii: (UNDER, OVER)."""

    under_radius: Floats
    over_radius: Floats
    tpr: Matrix
    fpr: Matrix


@dataclass(frozen=True, kw_only=True)
class PaperRuleRow:
    """A rule of the paper: its τ curve and best τ on the judged points, and where permutations put that."""

    unlearner: str
    attack: str
    taus: tuple[float, ...]
    curve: tuple[float, ...]
    best_tau: float
    best: float
    null_low: float
    null_high: float
    p: float


@dataclass(frozen=True, kw_only=True)
class BudgetRow:
    """Power of an attack that may ask so many labels per point; ``void``: its TPR must not be quoted."""

    unlearner: str
    attack: str
    queries: int
    auc: Estimate
    tpr: Estimate
    void: bool = False


@dataclass(frozen=True, kw_only=True)
class RadiusSide:
    """Estimated intervals of radii on one side of the boundary, flips of labels, and what they say of the intervals.

    ``expected``, ``refuted``, ``open``: intervals by ``radii.answers``.
    """

    intervals: int
    low: float | None = field(metadata=counted("intervals"))
    high: float | None = field(metadata=counted("intervals"))
    flips: int
    at_x: int
    flip: float | None = field(metadata=counted("flips"))
    early: int
    expected: int
    refuted: int
    open: int


Ends = tuple[float | None, float | None]


@dataclass(frozen=True, kw_only=True)
class RadiusPoints:
    """Single points of a row of radii, in columns; None where there is no interval or flip."""

    target: tuple[int, ...] = ()
    point_id: tuple[int, ...] = ()
    under: tuple[Ends, ...]
    over: tuple[Ends, ...]
    flip_under: tuple[float | None, ...]
    flip_over: tuple[float | None, ...]
    answer_under: tuple[str | None, ...]
    answer_over: tuple[str | None, ...]


@dataclass(frozen=True, kw_only=True)
class RadiusRow:
    """Radii that the theorems expect of one unlearning method, beside those at which labels flipped.

    ``reference``: the model that Δ_r is measured to, ``own_start`` or ``retrain``.
    """

    unlearner: str
    reference: str
    points: int
    under: RadiusSide
    over: RadiusSide
    median_margin: float
    median_lipschitz_input: float
    median_lipschitz_parameters: float
    median_unlearned_distance: float
    median_retrained_distance: float
    candidates: RadiusPoints = field(metadata=OF_POINTS)


@dataclass(frozen=True, kw_only=True)
class RequestRow:
    """How unique the gradients of one forget request were before anything was unlearned."""

    target: int
    point_id: int
    label: int
    gnq_log: float
    percentile: float
    bits: float
    squared_norm: float
    loss: float


@dataclass(frozen=True, kw_only=True)
class RequestCorrelationRow:
    """Rank correlation of a score of the forget requests with an attack's."""

    setting: str
    unlearner: str
    attack: str
    score: str
    control: bool
    targets: int
    spearman: Estimate = field(metadata=keys("spearman", "low", "high"))


@dataclass(frozen=True, kw_only=True)
class FrontRow:
    """One setting of a trade: the AUC of an attack, the unlearned targets' accuracy, both means over targets.

    ``on_front``: no other setting beats it; ``share``: of draws of targets in which none does
    (``audits.statistics.pareto``).
    """

    LOGGED: ClassVar[tuple[Logged, ...]] = (
        Logged(
            "front.{metric}",
            (
                *(f"{name}{end}" for name in ("auc", "accuracy") for end in Estimate.SUFFIXES),
                "on_front",
                "share",
            ),
        ),
    )

    setting: str
    auc: Estimate
    accuracy: Estimate
    on_front: bool
    share: float


@dataclass(frozen=True, kw_only=True)
class Front:
    """The trade of a sweep of defences: risk by one attack on one unlearning method against test accuracy."""

    unlearner: str
    attack: str
    targets: int
    draws: int
    settings: tuple[FrontRow, ...]


@dataclass(frozen=True, kw_only=True)
class HolmFamily:
    """Which cells of a setting differ from chance after Holm's correction."""

    alpha: float
    tests: int
    above: tuple[str, ...]
    below: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class ApolloResult(FinishedRun):
    """The content of result.json of an Apollo run."""

    KIND: ClassVar[str] = "apollo"

    controls: tuple[Control, ...] = ()
    table: tuple[AttackRow, ...]
    discoveries: tuple[DiscoveryRow, ...] = ()
    exposed: ExposureList | None = None
    three_way: tuple[ThreeWayRow, ...] = ()
    utility: tuple[UtilityRow, ...]
    setting_utility: tuple[SettingUtilityRow, ...] = ()
    heatmap: Mapping[str, HeatMap] = field(default_factory=dict)
    paper_rule: tuple[PaperRuleRow, ...] = ()
    budget: tuple[BudgetRow, ...] = ()
    radii: tuple[RadiusRow, ...] = ()
    disclosure: tuple[RequestRow, ...] = field(default=(), metadata=OF_POINTS)
    disclosure_correlations: tuple[RequestCorrelationRow, ...] = ()
    best: tuple[BestRow, ...] = ()
    front: Front | None = field(default=None, metadata=SPARSE)
    holm: Mapping[str, HolmFamily]
    expected_misses: float

    @property
    def level(self) -> float:
        """Confidence level of the intervals."""
        return float(look_up(self.plan, "audit.level") or 0.95)

    @property
    def given(self) -> bool:
        """Is a given model audited? Rows about methods are then all of it, those of controls of the plan's own."""
        return bool(look_up(self.plan, "target"))

    @property
    def original(self) -> bool:
        """Is the control ``identity`` the given model before unlearning, and no model of the plan's own?"""
        return self.given and look_up(self.plan, "target.original") is not None

    @property
    def units(self) -> str:
        """What makes intervals wide where points are told apart: models that disagree, or a lack of points."""
        return "shadows" if self.given else "targets" if self.rows(self.main_setting)[0].targets > 1 else "points"

    def rows(self, setting: str, rate: float | None = None) -> list[AttackRow]:
        """Return the rows of a setting at a promised rate (the first by default)."""
        wanted = setting, rate or self.table[0].promised_fpr
        return [row for row in self.table if (row.setting, row.promised_fpr) == wanted]

    @property
    def about(self) -> str:
        """The main setting and why it is that one; that all settings count as one experiment, where they do."""
        if self.settings[0].setting == POOLED:
            return f"{POOLED} (all {len(self.settings) - 1} settings as one experiment)"
        return super().about
