"""The schema of a result of ``orch score``: rows of result.json, as docs/reference/result.md explains them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from orchestrator.judgement.estimate import Estimate, keys
from orchestrator.judgement.rows import Control
from orchestrator.report.result import FinishedRun


@dataclass(frozen=True, kw_only=True)
class ScoreRow:
    """One attack at one promised false-positive rate.

    ``found_fpr_p``, where the table of the scores has decisions at the rate: of "the rate is at most as promised",
    ``…_off``: above it also after Holm's correction over all of these; ``void``: one of the attack's is off, so that
    what its decisions find must not be quoted.
    ``tpr``, ``found_fpr``: at thresholds that no judged point set; ``other_targets_tpr``: at those of the other
    targets' non-members; ``roc_tpr``: read off the ROC of the judged points themselves, as most tools do.
    """

    setting: str
    attack: str
    auc: Estimate
    auc_pooled: float
    auc_p: float
    auc_p_holm: float
    above_chance: bool
    promised_fpr: float
    thresholds: str
    tpr: Estimate
    found_fpr: Estimate
    other_targets_tpr: float | None
    roc_tpr: float
    targets: int
    members: int
    non_members: int
    found_fpr_p: float | None = None
    found_fpr_p_holm: float | None = None
    found_fpr_off: bool = False
    void: bool = False


@dataclass(frozen=True, kw_only=True)
class DecisionRow:
    """Decisions of an attack's own rule, which promises no rate."""

    setting: str
    attack: str
    tpr: Estimate
    fpr: Estimate


@dataclass(frozen=True, kw_only=True)
class ValueRow:
    """How many of those called are members where a share ``prior`` of all are; ``promised_fpr`` None: own rule.

    ``void``: by decisions that break a promise.
    """

    setting: str
    attack: str
    promised_fpr: float | None
    prior: float
    value: Estimate = field(metadata=keys("ppv", "ppv_low", "ppv_high"))
    void: bool = False


@dataclass(frozen=True, kw_only=True)
class EpsilonRow:
    """The lower bound on ε that guesses about pairs give, all rows of an attack together at the result's level."""

    setting: str
    attack: str
    share: float
    pairs: int
    guesses: int
    right: int
    delta: float
    at_least: float


@dataclass(frozen=True, kw_only=True)
class ScoreResult(FinishedRun):
    """The content of result.json of ``orch score``; ``plan`` holds the options and the files."""

    KIND: ClassVar[str] = "score"

    table: tuple[ScoreRow, ...]
    decisions: tuple[DecisionRow, ...]
    predictive_values: tuple[ValueRow, ...]
    epsilons: tuple[EpsilonRow, ...]
    no_epsilon: str
    covers: str
    layout: str
    level: float
    command: str
    controls: tuple[Control, ...] = ()

    def again(self) -> str:
        """Return the command that judges the same files again."""
        return self.command
