"""Rows with an AUC that is tested against one half: their flag, their star and their word, by one rule."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from audits.statistics.chance import ABOVE, CHANCE, UNSURE, Standing, standing
from orchestrator.judgement.rows import LEAK, NONE_SEEN, UNTOLD, Level
from orchestrator.report.grid import Entry
from orchestrator.report.numbers import entry

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from orchestrator.judgement.estimate import Estimate

STAR = "*"
"""The mark of an AUC that lies above chance."""
STAR_RULE = f"{STAR} beyond chance: p after Holm’s correction is small, and the whole interval lies above .500"
"""What a star takes, for the line under a table."""


class Tested(Protocol):
    """A row with an AUC, its p-value after Holm's correction, and whether it lies above chance."""

    @property
    def auc(self) -> Estimate:
        """The AUC with its interval."""
        ...

    @property
    def auc_p_holm(self) -> float:
        """The corrected p-value of one half."""
        ...

    @property
    def above_chance(self) -> bool:
        """What ``decided`` made of the two."""
        ...


R = TypeVar("R", bound="DataclassInstance")


def standing_of(row: Tested, level: float) -> Standing:
    """Return where the AUC of a row stands to one half (``audits.statistics.chance``)."""
    return standing(row.auc.value, row.auc.low, row.auc_p_holm, level)


def decided(rows: Iterable[R], level: float) -> tuple[R, ...]:
    """Return rows (``Tested``) with the flag ``above_chance`` that the rule gives, whatever flag they had."""
    tested: Any = rows
    return tuple(replace(row, above_chance=standing_of(row, level) == ABOVE) for row in tested)


def unsure(row: Tested, level: float) -> bool:
    """Say whether the test of a row tells its points apart, but its interval does not."""
    return standing_of(row, level) == UNSURE


def beyond(auc: Estimate) -> bool:
    """Say whether an AUC that is not tested beside others lies above one half with its whole interval."""
    return auc.above(CHANCE)


def level_of(row: Tested, level: float) -> Level:
    """Return what a row says by itself: a leak, nothing that can be told, or no leak."""
    return LEAK if row.above_chance else UNTOLD if unsure(row, level) else NONE_SEEN


def starred(row: Tested, tooltip: str = "") -> Entry:
    """Return the AUC of a row as an entry of a table, with a star where it lies above chance."""
    return entry(row.auc, mark=STAR if row.above_chance else "", tooltip=tooltip)
