"""What a finished membership run holds, in the terms of its report: settings, selections, attacks, cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from audits.errors import BadInput
from orchestrator.report.glossary import access_level
from orchestrator.report.reading import Row, look_up, main_setting, read_result

ALL, NONE = "all", "none"
LOSSES = "tmia_posterior"
"""The attack whose statistic is minus the loss: confidences and losses are read off its scores."""
JUDGES = {
    "labels": ("tmia_distance", "tmia", "tmia_smoothed", "noise_votes", "label_gap"),
    "posteriors": (LOSSES, "pmia", "gmia1", "gmia2", "gmia3", "fmia", "yeom"),
}
"""The attack that speaks in the verdict at each access: the first that the run has, whatever the attacks found."""
MOST_SETTINGS = 4
"""Runs of more settings are sweeps: shown in full at the main setting, and as curves and one line a setting beside."""


@dataclass(frozen=True)
class MembershipRun:
    """A finished run: ``result`` as in result.json, ``scores`` the columns of scores.parquet of the attack LOSSES."""

    result: Mapping[str, Any]
    scores: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @property
    def plan(self) -> dict[str, Any]:
        """The resolved plan."""
        return dict(self.result["plan"])

    @property
    def level(self) -> float:
        """Confidence level of the intervals."""
        return float(self.result["level"])

    @cached_property
    def main_setting(self) -> str:
        """The setting that is the plan itself, else the first."""
        settings = [{"setting": name, "overrides": changes} for name, changes in bare_overrides(self).items()]
        return main_setting(self.plan, settings)

    @cached_property
    def settings(self) -> list[str]:
        """Settings that have cells, in the run's order."""
        held = {row["setting"] for row in self.result["table"]}
        return [entry["setting"] for entry in self.result["settings"] if entry["setting"] in held]

    @cached_property
    def shown(self) -> list[str]:
        """Settings that are shown in full: all of a few, else the main one."""
        return self.settings if len(self.settings) <= MOST_SETTINGS else [self.main_setting]

    @property
    def is_sweep(self) -> bool:
        """Whether the settings are a sweep's, not those that the plan names."""
        return str(self.result["name"]) != f"{self.result['kind']}-audit"

    def mode(self, setting: str) -> str:
        """Return the mode (I, II or III) of a setting."""
        return next(str(entry["mode"]) for entry in self.result["settings"] if entry["setting"] == setting)

    def value(self, setting: str, path: str) -> Any:
        """Return the value at a dotted path of a setting's plan, or None."""
        changes = next(entry["overrides"] for entry in self.result["settings"] if entry["setting"] == setting)
        return changes[path] if path in changes else look_up(self.plan, path)

    def rows(self, setting: str) -> list[Row]:
        """Return the cells of a setting."""
        return [row for row in self.result["table"] if row["setting"] == setting]

    def cell(self, setting: str, selection: str, attack: str) -> Row | None:
        """Return one cell, or None where the run has none."""
        place = (setting, selection, attack)
        found = (row for row in self.result["table"] if (row["setting"], row["selection"], row["attack"]) == place)
        return next(found, None)

    @cached_property
    def selections(self) -> list[str]:
        """Selections of the table: everybody first, then in the plan's order."""
        held = list(dict.fromkeys(row["selection"] for row in self.result["table"]))
        order = [ALL, NONE, *(look_up(self.plan, "audit.selectors") or [])]
        return sorted(held, key=lambda name: order.index(name) if name in order else len(order))

    @cached_property
    def main_selection(self) -> str:
        """The plan's first selection that leaves somebody out; the verdict speaks about its candidates."""
        return next((name for name in self.selections if name not in (ALL, NONE)), self.selections[0])

    @cached_property
    def attacks(self) -> list[str]:
        """Attacks by access, weakest first, then in the table's order."""
        ordered = sorted(self.result["table"], key=lambda row: access_level(row["access"]))
        return list(dict.fromkeys(row["attack"] for row in ordered))

    def judge(self, access: str) -> str | None:
        """Return the attack that speaks in the verdict at an access, by name and never by what it found."""
        return next((name for name in JUDGES[access] if name in self.attacks), None)

    @cached_property
    def judges(self) -> list[str]:
        """The speaking attacks, labels first."""
        return [name for name in map(self.judge, JUDGES) if name]


def selector_names(run: MembershipRun) -> list[str]:
    """Return the selections that leave somebody out."""
    return [name for name in run.selections if name not in (ALL, NONE)]


def chance(row: Row) -> float | None:
    """Return the precision of answering at random: the share of member pairs among the attacked ones."""
    pairs = row["members"] + row["non_members"]
    return row["members"] / pairs if pairs else None


def read_membership_run(out: Path) -> MembershipRun:
    """Read result.json and, of scores.parquet, the rows of LOSSES; BadInput for unfinished runs and other kinds."""
    import pyarrow.parquet as pq

    result = read_result(out)
    if result["kind"] != "tmia":
        raise BadInput(f"{out / 'result.json'} is of kind {result['kind']!r}; this report reads kind 'tmia'")
    chosen = [name for name in pq.read_schema(out / "scores.parquet").names if name.startswith("q_")]
    columns = ["setting", "group", "member", "statistic", *chosen]
    table = pq.read_table(out / "scores.parquet", columns=columns, filters=[("attack", "==", LOSSES)])
    scores = {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
    return MembershipRun(result, scores)


def bare_overrides(run: MembershipRun) -> dict[str, dict[str, Any]]:
    """Return setting → dotted changes, groups spread into their fields, without the variants that a sweep empties."""

    def spread(path: str, value: Any) -> dict[str, Any]:
        if isinstance(value, Mapping):
            return {name: leaf for key, part in value.items() for name, leaf in spread(f"{path}.{key}", part).items()}
        return {path: value}

    found = {}
    for entry in run.result["settings"]:
        changes = [spread(path, value) for path, value in entry["overrides"].items() if path != "variants"]
        found[str(entry["setting"])] = {path: value for part in changes for path, value in part.items()}
    return found
