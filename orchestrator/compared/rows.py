"""The schema of compare.json, as docs/reference/result.md explains it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from orchestrator.report.result import FinishedRun
from orchestrator.report.rows import Estimate, keys

SCHEMA = "orch.compare/1"


@dataclass(frozen=True, kw_only=True)
class SideRow:
    """One of the runs, or one setting of a run: how it is called here, and where it comes from."""

    label: str
    folder: str
    setting: str | None
    kind: str
    seed: int


@dataclass(frozen=True, kw_only=True)
class PairRow:
    """Two sides: what is paired, and why; ``shared`` and ``targets`` of the line that shares least.

    ``identical``: of every attack that is compared both have the same scores, point by point.
    """

    first: str
    second: str
    paired: str
    reason: str
    identical: bool = False


@dataclass(frozen=True, kw_only=True)
class DifferenceRow:
    """A metric of the second side minus that of the first; ``differs``: also after Holm's correction over all rows."""

    first: str
    second: str
    setting: str
    attack: str
    metric: str
    promised_fpr: float | None
    first_value: float
    second_value: float
    difference: Estimate = field(metadata=keys("difference", "low", "high"))
    p: float | None
    p_holm: float | None = None
    differs: bool = False
    paired: str
    shared_targets: int
    first_targets: int
    second_targets: int
    shared_points: int

    @property
    def name(self) -> str:
        """The metric with its promised rate."""
        return self.metric if self.promised_fpr is None else f"{self.metric} at {self.promised_fpr * 100:g} %"


@dataclass(frozen=True, kw_only=True)
class CompareResult(FinishedRun):
    """The content of compare.json."""

    KIND: ClassVar[str] = "compare"

    schema: str = SCHEMA
    sides: tuple[SideRow, ...]
    pairs: tuple[PairRow, ...]
    table: tuple[DifferenceRow, ...]
    covers: str
    level: float
    command: str
    question: str

    @property
    def identical(self) -> bool:
        """Whether all sides have the same scores."""
        return all(pair.identical for pair in self.pairs)

    @property
    def whole(self) -> bool:
        """Whether whole runs are compared, and no attack is left out."""
        return not (self.notes or self.plan["options"]["attacks"] or any(side.setting for side in self.sides))

    def again(self) -> str:
        """Return the command that compares the same runs again."""
        return self.command


Document = dict[str, Any]
