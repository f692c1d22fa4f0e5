"""A finished GNQ run in the terms of its report: settings, arms, cells, comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, Self

from orchestrator.gnq.plan import FIRST
from orchestrator.gnq.result.judging import CONTROLS
from orchestrator.gnq.result.paired import PairedRow
from orchestrator.gnq.result.rows import AreaRow, ArmRow, ComparisonRow, EpsilonRow, GnqResult
from orchestrator.report.result import of_setting, read_run, run_of
from orchestrator.report.words import RANKINGS

NONE = "none"
CONTRIBUTORS, KEPT, KEPT_UNFILTERED = "contributors", "kept", "kept_unfiltered"
REMOVED, REMOVED_UNFILTERED = "removed", "removed_unfiltered"
JUDGES = ("lira", "shadow_posterior", "white_box", "loss")
"""The attack by which groups and arms are compared: the first that the run has, whatever the attacks found."""

BEST_SHADOWS = ("adaptive", "naive", "none")
"""Shadows in the order in which a comparison takes them: those that know the defence first."""


@dataclass(frozen=True)
class GnqRun:
    """A finished run by its result."""

    result: GnqResult

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Self:
        """Return the run that the content of result.json describes."""
        return cls(run_of(document, GnqResult))

    @property
    def level(self) -> float:
        """Confidence level of the intervals."""
        return self.result.level

    @property
    def settings(self) -> list[str]:
        """Settings in the run's order."""
        return [entry.setting for entry in self.result.settings]

    @property
    def main_setting(self) -> str:
        """The setting that is the plan itself, else the first."""
        return self.result.main_setting

    def arms(self, setting: str) -> list[ArmRow]:
        """Return the arms of a setting in the run's order."""
        return of_setting(self.result.arms, setting)

    def epsilon_found(self, setting: str, arm: ArmRow, moment: str = "after") -> EpsilonRow | None:
        """Return the largest of the lower bounds on an arm's ε, which hold together; None where none was sought."""
        rows = [row for row in of_setting(self.result.epsilons, setting) if (row.arm, row.moment) == (arm.arm, moment)]
        return max(rows, key=lambda row: row.at_least) if rows else None

    def undefended(self, setting: str) -> ArmRow | None:
        """Return the arm that does nothing against disclosure; None for a run without it."""
        return next((row for row in self.arms(setting) if row.method == NONE), None)

    def removals(self, setting: str) -> list[ArmRow]:
        """Return the arms that remove points by what is to be judged, not by a control ranking."""
        return [row for row in self.arms(setting) if row.method == "remove" and row.ranking not in CONTROLS]

    @cached_property
    def attacks(self) -> list[str]:
        """Attacks in the order of the table."""
        return list(dict.fromkeys(row.attack for row in self.result.table))

    @cached_property
    def main_score(self) -> str:
        """The score of GNQ of the verdict, by name and never by what it predicts: the first that the run has."""
        held = {row.score for row in self.result.correlations}
        return next((name for name in FIRST if name in held), FIRST[0])

    @cached_property
    def judge(self) -> str:
        """The attack by which groups and arms are compared, by name and never by what it found."""
        return next((name for name in JUDGES if name in self.attacks), self.attacks[0])

    def cell(
        self, setting: str, arm: str, group: str, attack: str, shadows: Sequence[str], moment: str = "after"
    ) -> AreaRow | None:
        """Return one cell, of the first of ``shadows`` that the run has; None where it has none."""
        place = (setting, arm, group, attack, moment)
        rows = {
            row.shadows: row
            for row in reversed(self.result.table)
            if (row.setting, row.arm, row.group, row.attack, row.moment) == place
        }
        return next((rows[name] for name in shadows if name in rows), None)

    def kept(self, setting: str, arm: ArmRow) -> AreaRow | None:
        """Return the cell of the points that a removal keeps against those that the twin keeps; None for other arms."""
        return self.cell(setting, arm.arm, KEPT, self.judge, BEST_SHADOWS) if arm.method == "remove" else None

    def comparison(self, setting: str, arm: str, against: str) -> ComparisonRow | None:
        """Return arm − ``against`` for all contributors by the judge, with the shadows that know the defence."""
        place = (arm, against, CONTRIBUTORS, self.judge)
        rows = [
            row
            for row in of_setting(self.result.comparisons, setting)
            if (row.arm, row.against, row.group, row.attack) == place
        ]
        return next((row for name in BEST_SHADOWS for row in rows if row.shadows == name), None)

    def against(self, setting: str, arm: ArmRow) -> list[ComparisonRow | None]:
        """Return what an arm changes against no defence and against the same done by each ranking of ``CONTROLS``."""
        others = [self.undefended(setting), *(self.control_arm(setting, name, arm) for name in CONTROLS)]
        return [self.comparison(setting, arm.arm, other.arm) if other else None for other in others]

    def control_arm(self, setting: str, ranking: str, arm: ArmRow) -> ArmRow | None:
        """Return the arm that does the same as ``arm`` by a control ranking; None without one, or for DP-SGD."""
        same = (arm.method, arm.share, arm.strength)
        for row in self.arms(setting):
            if arm.ranking and row.ranking == ranking and (row.method, row.share, row.strength) == same:
                return row
        return None


def read_gnq_run(out: Path) -> GnqRun:
    """Read result.json of a finished run; BadInput for unfinished runs and other kinds."""
    return GnqRun(read_run(out, GnqResult))


class Scored(Protocol):
    """A row about a score of points."""

    @property
    def score(self) -> str:
        """The name of the score."""
        ...


def scores_of(rows: Iterable[Scored]) -> list[str]:
    """Return the scores of points that ``rows`` are about, those of GNQ first."""
    held = dict.fromkeys(row.score for row in rows)
    return [name for name in (*RANKINGS, *(name for name in held if name not in RANKINGS)) if name in held]


def clear(row: PairedRow | None, level: float) -> int:
    """Return the side of zero on which a paired difference lies, also after Holm's correction; 0 for neither."""
    return row.clear(level) if row else 0
