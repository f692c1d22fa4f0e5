"""What a finished disclosure run holds, in the terms of its report: settings, arms, cells, comparisons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from audits.errors import BadInput
from orchestrator.disclosure.plan_checks import FIRST
from orchestrator.report.disclosure.glossary import RANKINGS
from orchestrator.report.reading import Row, look_up, main_setting, read_result

NONE = "none"
CONTRIBUTORS, KEPT, KEPT_UNFILTERED = "contributors", "kept", "kept_unfiltered"
REMOVED, REMOVED_UNFILTERED = "removed", "removed_unfiltered"
SAME_RULE = (CONTRIBUTORS, KEPT, REMOVED)
"""Groups whose two sides went through the same rule: on models that saw nobody their AUC must be ½."""
CONTROLS = ("random", "loss_log")
"""Rankings by which the same is done as a control: removal, or noise."""
JUDGES = ("lira", "shadow_posterior", "white_box", "loss")
"""The attack by which groups and arms are compared: the first that the run has, whatever the attacks found."""

BEST_SHADOWS = ("adaptive", "naive", "none")
"""Shadows in the order in which a comparison takes them: those that know the defence first."""


@dataclass(frozen=True)
class DisclosureRun:
    """A finished run: ``result`` as in result.json."""

    result: Mapping[str, Any]

    @property
    def plan(self) -> dict[str, Any]:
        """The resolved plan."""
        return dict(self.result["plan"])

    @property
    def level(self) -> float:
        """Confidence level of the intervals."""
        return float(self.result["level"])

    @property
    def is_sweep(self) -> bool:
        """Whether the settings are a sweep's, not those that the plan names."""
        return str(self.result["name"]) != f"{self.result['kind']}-audit"

    @cached_property
    def settings(self) -> list[str]:
        """Settings in the run's order."""
        return [str(entry["setting"]) for entry in self.result["settings"]]

    @cached_property
    def main_setting(self) -> str:
        """The setting that is the plan itself, else the first."""
        return main_setting(self.plan, self.result["settings"])

    def value(self, setting: str, path: str) -> Any:
        """Return the value at a dotted path of a setting's plan, or None."""
        changes = next(entry["overrides"] for entry in self.result["settings"] if entry["setting"] == setting)
        return changes[path] if path in changes else look_up(self.plan, path)

    def rows(self, field: str, setting: str) -> list[Row]:
        """Return the rows of a list of result.json that belong to a setting; none where the result is older."""
        return [row for row in self.result.get(field, ()) if row["setting"] == setting]

    def arms(self, setting: str) -> list[Row]:
        """Return the arms of a setting in the run's order."""
        return self.rows("arms", setting)

    def undefended(self, setting: str) -> Row | None:
        """Return the arm that does nothing against disclosure; None for a run without it."""
        return next((row for row in self.arms(setting) if row["method"] == NONE), None)

    def removals(self, setting: str) -> list[Row]:
        """Return the arms that remove points by what is to be judged, not by a control ranking."""
        return [row for row in self.arms(setting) if row["method"] == "remove" and row["ranking"] not in CONTROLS]

    @cached_property
    def attacks(self) -> list[str]:
        """Attacks in the order of the table."""
        return list(dict.fromkeys(row["attack"] for row in self.result["table"]))

    @cached_property
    def speaker(self) -> str:
        """The score of GNQ that speaks, by name and never by what it foretells: the first that the run has."""
        held = {row["score"] for row in self.result["correlations"]}
        return next((name for name in FIRST if name in held), FIRST[0])

    @cached_property
    def judge(self) -> str:
        """The attack by which groups and arms are compared, by name and never by what it found."""
        return next((name for name in JUDGES if name in self.attacks), self.attacks[0])

    def cell(
        self, setting: str, arm: str, group: str, attack: str, shadows: Sequence[str], moment: str = "after"
    ) -> Row | None:
        """Return one cell, of the first of ``shadows`` that the run has; None where it has none."""
        rows = [
            row
            for row in self.rows("table", setting)
            if (row["arm"], row["group"], row["attack"], row["moment"]) == (arm, group, attack, moment)
        ]
        return next((row for name in shadows for row in rows if row["shadows"] == name), None)

    def kept(self, setting: str, arm: Row) -> Row | None:
        """Return the cell of the points that a removal keeps against those that the twin keeps; None for other arms."""
        if arm["method"] != "remove":
            return None
        return self.cell(setting, arm["arm"], KEPT, self.judge, BEST_SHADOWS)

    def comparison(self, setting: str, arm: str, against: str) -> Row | None:
        """Return arm − ``against`` for all contributors by the judge, with the shadows that know the defence."""
        rows = [
            row
            for row in self.rows("comparisons", setting)
            if (row["arm"], row["against"], row["group"], row["attack"]) == (arm, against, CONTRIBUTORS, self.judge)
        ]
        return next((row for name in BEST_SHADOWS for row in rows if row["shadows"] == name), None)

    def scores(self, field: str, setting: str) -> list[str]:
        """Return the scores of points that a list of result.json has rows for, those of GNQ first."""
        held = dict.fromkeys(row["score"] for row in self.rows(field, setting))
        return [name for name in (*RANKINGS, *(name for name in held if name not in RANKINGS)) if name in held]

    def against(self, setting: str, arm: Row) -> list[Row | None]:
        """Return what an arm changes against no defence and against the same done by each ranking of ``CONTROLS``."""
        others = [self.undefended(setting), *(self.control_arm(setting, name, arm) for name in CONTROLS)]
        return [self.comparison(setting, arm["arm"], other["arm"]) if other else None for other in others]

    def control_arm(self, setting: str, ranking: str, arm: Row) -> Row | None:
        """Return the arm that does the same as ``arm`` by a control ranking; None without one, or for DP-SGD."""
        same = ("method", "share", "strength")
        for row in self.arms(setting):
            if arm["ranking"] and row["ranking"] == ranking and all(row[name] == arm[name] for name in same):
                return row
        return None


def read_disclosure_run(out: Path) -> DisclosureRun:
    """Read result.json of a finished run; BadInput for unfinished runs and other kinds."""
    result = read_result(out)
    if result["kind"] != "gnq":
        raise BadInput(f"{out / 'result.json'} is of kind {result['kind']!r}; this report reads kind 'gnq'")
    return DisclosureRun(result)


def side(row: Row | None) -> int:
    """Return on which side of zero the whole interval of a paired difference lies: +1, −1, or 0 for neither."""
    if row is None or row["low"] is None or row["high"] is None:
        return 0
    return 1 if row["low"] > 0 else -1 if row["high"] < 0 else 0


def clear(row: Row | None, level: float) -> int:
    """Return the side of zero on which a paired difference lies, also after Holm's correction; 0 for neither."""
    corrected = row is None or row["p_holm"] is None or row["p_holm"] <= 1.0 - level
    return side(row) if corrected else 0
