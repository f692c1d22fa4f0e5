"""A TMIA result in the terms of its report: settings, selections, attacks, cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

from numpy.typing import NDArray

from orchestrator.report.result import look_up, of_setting, run_of
from orchestrator.report.words import access_level
from orchestrator.tmia.result.controls import judges_in
from orchestrator.tmia.result.given_rows import result_form
from orchestrator.tmia.result.rows import TmiaCell, TmiaResult

ALL, NONE = "all", "none"
MOST_SETTINGS = 4
"""Runs of more settings are sweeps: shown in full at the main setting, and as curves and one line a setting beside."""


@dataclass(frozen=True)
class TmiaRun:
    """A finished run: its result, and the columns of scores.parquet of the attack LOSSES."""

    result: TmiaResult
    scores: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, document: Mapping[str, Any], scores: Mapping[str, NDArray[Any]] | None = None) -> Self:
        """Return the run that the content of result.json describes."""
        return cls(run_of(document, result_form(document["plan"])), scores or {})

    @property
    def level(self) -> float:
        """Confidence level of the intervals."""
        return self.result.level

    @cached_property
    def main_setting(self) -> str:
        """The setting that is the plan itself, else the first."""
        return self.result.main_setting

    @cached_property
    def settings(self) -> list[str]:
        """Settings that have cells, in the run's order."""
        held = {row.setting for row in self.result.table}
        return [entry.setting for entry in self.result.settings if entry.setting in held]

    @cached_property
    def shown(self) -> list[str]:
        """Settings that are shown in full: all of a few, else the main one."""
        return self.settings if len(self.settings) <= MOST_SETTINGS else [self.main_setting]

    def mode(self, setting: str) -> str:
        """Return the mode (I, II or III) of a setting."""
        return next(entry.mode for entry in self.result.settings if entry.setting == setting)

    def rows(self, setting: str) -> list[TmiaCell]:
        """Return the cells of a setting."""
        return of_setting(self.result.table, setting)

    def cell(self, setting: str, selection: str, attack: str) -> TmiaCell | None:
        """Return one cell, or None where the run has none."""
        place = (setting, selection, attack)
        found = (row for row in self.result.table if (row.setting, row.selection, row.attack) == place)
        return next(found, None)

    @cached_property
    def selections(self) -> list[str]:
        """Selections of the table: everybody first, then in the plan's order."""
        held = list(dict.fromkeys(row.selection for row in self.result.table))
        order = [ALL, NONE, *(look_up(self.result.plan, "audit.selectors") or [])]
        return sorted(held, key=lambda name: order.index(name) if name in order else len(order))

    @cached_property
    def selectors(self) -> list[str]:
        """Selections that leave somebody out."""
        return [name for name in self.selections if name not in (ALL, NONE)]

    @cached_property
    def main_selection(self) -> str:
        """The plan's first selection that leaves somebody out; the verdict is about its candidates."""
        return next(iter(self.selectors), self.selections[0])

    @cached_property
    def attacks(self) -> list[str]:
        """Attacks by access, weakest first, then in the table's order."""
        ordered = sorted(self.result.table, key=lambda row: access_level(row.access))
        return list(dict.fromkeys(row.attack for row in ordered))

    @cached_property
    def judges(self) -> list[str]:
        """The attacks of the verdict that have a result, labels first: by name and never by what they found."""
        chosen = {name for setting in self.settings for name in judges_in(self.result, setting)}
        return [name for name in self.attacks if name in chosen]
