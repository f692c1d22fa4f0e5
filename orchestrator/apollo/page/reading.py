"""A finished Apollo run in the terms of its report: main setting, promised rates, scores, utility of each unlearner."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from audits.errors import BadInput
from audits.statistics.summary import Cell, cells
from orchestrator.apollo.result.rows import ApolloResult, AttackRow
from orchestrator.apollo.result.words import words
from orchestrator.report.result import read_run, read_scores, run_of
from orchestrator.report.words import access_level


@dataclass(frozen=True)
class Utility:
    """Means over the targets of one unlearning method, NaN without any, and how often each flag was raised."""

    retain_accuracy: float
    forget_accuracy: float
    test_accuracy: float
    distance: float
    seconds: float
    flags: Mapping[str, int]
    targets: int


@dataclass(frozen=True)
class ApolloRun:
    """A finished run: its result, and the scores table as columns."""

    result: ApolloResult
    scores: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, document: Mapping[str, Any], scores: Mapping[str, NDArray[Any]] | None = None) -> Self:
        """Return the run that the content of result.json describes."""
        return cls(run_of(document, ApolloResult), scores or {})

    @cached_property
    def rates(self) -> list[float]:
        """The promised false-positive rates, that of most tables first."""
        return list(dict.fromkeys(row.promised_fpr for row in self.result.table))

    @property
    def fpr(self) -> float:
        """The promised false-positive rate of most tables: the first one."""
        return self.rates[0]

    @property
    def main_setting(self) -> str:
        """The setting of the main table: the plan itself (but for what all settings change alike), else the first."""
        return self.result.main_setting

    @property
    def settings(self) -> list[str]:
        """Settings in the run's order."""
        return [entry.setting for entry in self.result.settings]

    def rows(self, setting: str | None = None, rate: float | None = None) -> list[AttackRow]:
        """Return the rows of a setting (the main one by default) at a promised rate (the first by default)."""
        return self.result.rows(setting or self.main_setting, rate)

    @cached_property
    def unlearners(self) -> list[str]:
        """Unlearners of the main table, in its order."""
        return list(dict.fromkeys(row.unlearner for row in self.rows()))

    @cached_property
    def _controls(self) -> dict[tuple[str, str], str | None]:
        return {(row.setting, row.unlearner): row.control_of for row in self.result.table}

    def control_of(self, unlearner: str, setting: str | None = None) -> str | None:
        """Return the control that is called ``unlearner`` in a setting (the main one by default), None of a method."""
        return self._controls.get((setting or self.main_setting, unlearner))

    def called(self, unlearner: str) -> str:
        """Return an unlearner's name as the report writes it, controls marked as such under every name."""
        control = self.control_of(unlearner)
        return words(unlearner) if control in (None, unlearner) else f"{words(unlearner)} (control)"

    @cached_property
    def attacks(self) -> list[str]:
        """Attacks of the main table by access, weakest first, then in the table's order."""
        ordered = sorted(self.rows(), key=lambda row: access_level(row.access))
        return list(dict.fromkeys(row.attack for row in ordered))

    @cached_property
    def accesses(self) -> list[str]:
        """Access levels of the main table, weakest first."""
        return sorted(dict.fromkeys(row.access for row in self.rows()), key=access_level)

    def best_label_row(self, unlearner: str) -> AttackRow | None:
        """Return the row of the label-only attack with the highest AUC."""
        rows = [row for row in self.rows() if row.unlearner == unlearner and row.access == "labels"]
        return max(rows, key=lambda row: float(row.auc), default=None)

    @cached_property
    def cells(self) -> dict[tuple[str, str], Cell]:
        """Scores of the main setting by (unlearner, attack); none where the run kept no scores."""
        if not self.scores:
            return {}
        rows = self.scores["setting"] == self.main_setting
        chosen = {name: column[rows] for name, column in self.scores.items()}
        return {(cell.unlearner, cell.attack): cell for cell in cells(chosen)}

    def utility(self, unlearner: str) -> Utility:
        """Return the means over targets of an unlearner's utility rows and how often each flag was raised."""
        rows = [row for row in self.result.utility if row.unlearner == unlearner]
        names = ("retain_accuracy", "forget_accuracy", "test_accuracy", "distance", "seconds")
        found = {name: [getattr(row, name) for row in rows] for name in names}
        means = {name: float(np.mean(each)) if each and None not in each else math.nan for name, each in found.items()}
        flags = [row.flag for row in rows if row.flag]
        return Utility(**means, flags={flag: flags.count(flag) for flag in dict.fromkeys(flags)}, targets=len(rows))


def read_apollo_run(out: Path) -> ApolloRun:
    """Read result.json and scores.parquet of a run; raise BadInput as ``read_run`` does."""
    run = ApolloRun(read_run(out, ApolloResult), read_scores(out))
    if not run.rows():
        raise BadInput(f"{out / 'result.json'} has no table rows for setting {run.main_setting!r}")
    return run
