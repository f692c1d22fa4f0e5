"""A finished membership run in the terms of its report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from numpy.typing import NDArray

from audits.statistics.summary import Cell, cells
from orchestrator.mia.result.areas import judged_points
from orchestrator.mia.result.rows import (
    BlindRow,
    CanaryRow,
    DiscoveryRow,
    EpsilonRow,
    MiaResult,
    MiaRow,
    OwnRow,
    ShadowRow,
)
from orchestrator.report.result import of_setting, read_run, read_scores, run_of


@dataclass(frozen=True)
class MiaRun:
    """A finished run: its result, and the columns of scores.parquet."""

    result: MiaResult
    scores: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, document: Mapping[str, Any], scores: Mapping[str, NDArray[Any]] | None = None) -> Self:
        """Return the run that the content of result.json describes."""
        return cls(run_of(document, MiaResult), scores or {})

    @property
    def level(self) -> float:
        """Confidence level of the intervals."""
        return self.result.level

    @property
    def judge(self) -> str:
        """The attack of the verdict."""
        return self.result.judge

    @cached_property
    def main_setting(self) -> str:
        """The setting that is the plan itself, else the first."""
        return self.result.main_setting

    @cached_property
    def settings(self) -> list[str]:
        """Settings in the run's order."""
        return [entry.setting for entry in self.result.settings]

    @property
    def rates(self) -> list[float]:
        """Promised false-positive rates of the main setting, in the plan's order."""
        return self.result.rates

    def rows(self, setting: str | None = None, rate: float | None = None) -> list[MiaRow]:
        """Return the rows of a setting (the main one) at a promised rate (the first), weakest access first."""
        return self.result.rows(setting or self.main_setting, rate)

    @cached_property
    def attacks(self) -> list[str]:
        """Attacks of the main setting, weakest access first."""
        return [row.attack for row in self.rows()]

    def row(self, attack: str, setting: str | None = None, rate: float | None = None) -> MiaRow | None:
        """Return the row of an attack, None where the run has none."""
        return next((row for row in self.rows(setting, rate) if row.attack == attack), None)

    @cached_property
    def canaries(self) -> list[CanaryRow]:
        """The positive control of the main setting, in the order of the attacks."""
        return self.ordered(of_setting(self.result.canaries, self.main_setting))

    @cached_property
    def shadows(self) -> list[ShadowRow]:
        """Power with some of the shadows, of the main setting."""
        return self.ordered(of_setting(self.result.shadows, self.main_setting))

    @cached_property
    def epsilons(self) -> list[EpsilonRow]:
        """Bounds on ε of the main setting."""
        return self.ordered(of_setting(self.result.epsilons, self.main_setting))

    @cached_property
    def discoveries(self) -> list[DiscoveryRow]:
        """Discoveries of the main setting."""
        return self.ordered(of_setting(self.result.discoveries, self.main_setting))

    @cached_property
    def blind(self) -> BlindRow | None:
        """How a given target's members are told from non-members without it; None where targets were trained."""
        return next(iter(of_setting(self.result.blind, self.main_setting)), None)

    @property
    def given(self) -> bool:
        """Whether the target was given, not trained."""
        return self.result.given

    @property
    def over(self) -> str:
        """What intervals are over."""
        return "points and shadows" if self.given else "pools"

    @cached_property
    def own(self) -> list[OwnRow]:
        """The models of the plan's own recipe that are judged beside a given target, in the order of the attacks."""
        return self.ordered(of_setting(self.result.own, self.main_setting))

    def ordered(self, rows: list[Any]) -> list[Any]:
        """Return rows in the order of the attacks."""
        return sorted(rows, key=lambda row: self.attacks.index(row.attack))

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """Scores of the main setting about targets and ordinary points, by attack."""
        rows = self.scores["setting"] == self.main_setting
        chosen = judged_points({name: column[rows] for name, column in self.scores.items()})
        return {cell.attack: cell for cell in cells(chosen)}


def read_mia_run(out: Path) -> MiaRun:
    """Read result.json and scores.parquet of a run; raise BadInput as ``read_run`` does."""
    return MiaRun(read_run(out, MiaResult), read_scores(out))
