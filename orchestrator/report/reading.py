"""What a finished run holds, in the terms of the report: names, main setting, swept values, utility per unlearner."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from audits.errors import BadInput
from audits.evaluation.summary import Cell, cells
from orchestrator.report.glossary import access_level

Row = dict[str, Any]

SCHEMA = "orch.result/1"


def percent(value: float | None, digits: int = 1) -> str:
    """Return a rate as a percentage, a dash where there is none."""
    return "–" if value is None or value != value else f"{value * 100:.{digits}f}\N{NO-BREAK SPACE}%"


def small_p(value: float) -> str:
    """Return a p-value with as many digits as it is worth."""
    return "< 0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def look_up(plan: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted path of the resolved plan, or None."""
    value: Any = plan
    for part in path.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def main_setting(plan: Mapping[str, Any], settings: Sequence[Mapping[str, Any]]) -> str:
    """Return the setting that is ``plan`` (resolved) itself, but for what all settings change alike, else the first."""
    first = settings[0]["overrides"]
    shared = [path for path, value in first.items() if all(each["overrides"].get(path) == value for each in settings)]
    for entry in settings:
        own = {path: value for path, value in entry["overrides"].items() if path not in shared}
        if all(look_up(plan, path) == value for path, value in own.items()):
            return str(entry["setting"])
    return str(settings[0]["setting"])


@dataclass(frozen=True)
class Run:
    """A finished run: ``result`` as in result.json and the scores table as columns."""

    result: dict[str, Any]
    scores: dict[str, NDArray[Any]]

    @property
    def plan(self) -> dict[str, Any]:
        """The resolved plan."""
        return dict(self.result["plan"])

    @property
    def level(self) -> float:
        """Confidence level of the intervals."""
        return float(look_up(self.plan, "audit.level") or 0.95)

    @property
    def fpr(self) -> float:
        """The promised false-positive rate of the tables: the first one."""
        return float(self.result["table"][0]["promised_fpr"])

    @cached_property
    def main_setting(self) -> str:
        """The setting of the main table: the plan itself (but for what all settings change alike), else the first."""
        return main_setting(self.plan, self.result["settings"])

    def rows(self, setting: str | None = None) -> list[Row]:
        """Return the table rows of a setting (the main one by default) at the promised rate of the tables."""
        wanted = setting or self.main_setting
        return [row for row in self.result["table"] if row["setting"] == wanted and row["promised_fpr"] == self.fpr]

    @cached_property
    def unlearners(self) -> list[str]:
        """Unlearners of the main table, in its order."""
        return list(dict.fromkeys(row["unlearner"] for row in self.rows()))

    @cached_property
    def attacks(self) -> list[str]:
        """Attacks of the main table by access, weakest first, then in the table's order."""
        ordered = sorted(self.rows(), key=lambda row: access_level(row["access"]))
        return list(dict.fromkeys(row["attack"] for row in ordered))

    @cached_property
    def accesses(self) -> list[str]:
        """Access levels of the main table, weakest first."""
        return sorted(dict.fromkeys(row["access"] for row in self.rows()), key=access_level)

    def best_label_row(self, unlearner: str, setting: str | None = None) -> Row | None:
        """Return the row of the label-only attack with the highest AUC."""
        rows = [row for row in self.rows(setting) if row["unlearner"] == unlearner and row["access"] == "labels"]
        return max(rows, key=lambda row: float(row["auc"]), default=None)

    @cached_property
    def cells(self) -> dict[tuple[str, str], Cell]:
        """Scores of the main setting by (unlearner, attack)."""
        rows = self.scores["setting"] == self.main_setting
        chosen = {name: column[rows] for name, column in self.scores.items()}
        return {(cell.unlearner, cell.attack): cell for cell in cells(chosen)}

    def utility(self, unlearner: str) -> Row:
        """Return the means over targets of an unlearner's utility rows and how often each flag was raised."""
        rows = [row for row in self.result["utility"] if row["unlearner"] == unlearner]
        names = ("retain_accuracy", "forget_accuracy", "test_accuracy", "distance", "seconds")
        means: Row = {name: float(np.mean([row[name] for row in rows])) if rows else float("nan") for name in names}
        flags = [row["flag"] for row in rows if row["flag"]]
        means["flags"] = {flag: flags.count(flag) for flag in dict.fromkeys(flags)}
        means["targets"] = len(rows)
        return means


def read_result(out: Path) -> dict[str, Any]:
    """Return result.json of a finished run; raise BadInput when a file is missing or of another schema."""
    for name in ("result.json", "scores.parquet"):
        if not (out / name).is_file():
            raise BadInput(f"{out} is not a finished run: {name} is missing")
    result: dict[str, Any] = json.loads((out / "result.json").read_text(encoding="utf-8"))
    if result.get("schema") != SCHEMA:
        raise BadInput(f"{out / 'result.json'} has schema {result.get('schema')!r}, this version reads {SCHEMA!r}")
    if not result["table"]:
        raise BadInput(f"{out / 'result.json'} has an empty table: nothing to report")
    return result


def read_run(out: Path) -> Run:
    """Read result.json and scores.parquet of a run; raise BadInput as ``read_result`` does."""
    import pyarrow.parquet as pq

    result = read_result(out)
    table = pq.read_table(out / "scores.parquet")
    scores = {name: table.column(name).to_numpy(zero_copy_only=False) for name in table.column_names}
    run = Run(result, scores)
    if not run.rows():
        raise BadInput(f"{out / 'result.json'} has no table rows for setting {run.main_setting!r}")
    return run
