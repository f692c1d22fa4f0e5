"""The schema of a TMIA result about a given model: what is more, or other, than in ``rows``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from audits.tmia.again import GROUPS
from orchestrator.judgement.estimate import Estimate
from orchestrator.tmia.result.rows import TmiaCell, TmiaResult


@dataclass(frozen=True, kw_only=True)
class GivenCell(TmiaCell):
    """One attack on one selection of the candidates of a given model: ``fpr`` is that on its own known non-members.

    ``resampled``: what intervals of rates and AUC are over.
    """

    resampled: str

    @property
    def clusters(self) -> int:
        """How many of the scarcest thing resampled the interval of ``fpr`` rests on: groups of reference models."""
        return self.non_members if self.resampled == "points" else GROUPS

    @property
    def breaks(self) -> bool:
        """Whether the promise is broken: on null models, or on the non-members of the model itself."""
        return self.null_fpr_off or self.fpr_off


@dataclass(frozen=True, kw_only=True)
class OwnModelCell:
    """The same attack on the same selection, about one of the models of the plan's own recipe."""

    setting: str
    control: int
    selection: str
    attack: str
    access: str
    candidates: int
    true_positives: int
    false_positives: int
    members: int
    non_members: int
    precision: Estimate
    coverage: Estimate
    fpr: Estimate
    auc: Estimate
    failed: int
    resampled: str


@dataclass(frozen=True, kw_only=True)
class AlikeRow:
    """How well models that saw none of the candidates tell the given model's members from its known non-members."""

    setting: str
    auc: Estimate
    differ: bool


@dataclass(frozen=True, kw_only=True)
class GivenResult(TmiaResult):
    """The content of result.json of a TMIA run about a given model."""

    table: tuple[GivenCell, ...]
    own_models: tuple[OwnModelCell, ...]
    alike: tuple[AlikeRow, ...]


def has_target(plan: Mapping[str, Any]) -> bool:
    """Say whether the plan in a result is about a given model."""
    return plan.get("target") is not None


def cell_form(plan: Mapping[str, Any]) -> type[TmiaCell]:
    """Return the form of the cells in the result of a plan."""
    return GivenCell if has_target(plan) else TmiaCell


def result_form(plan: Mapping[str, Any]) -> type[TmiaResult]:
    """Return the form of the result of a plan."""
    return GivenResult if has_target(plan) else TmiaResult
