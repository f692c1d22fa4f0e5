"""The schema of compare.json, as docs/reference/result.md explains it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Final, Literal

from orchestrator.judgement.estimate import Estimate, keys
from orchestrator.report.result import FinishedRun
from orchestrator.report.rows import SPARSE

SCHEMA = "orch.compare/1"
SHADOWS_TOO: Final = "targets with their shadows"
TARGETS_ONLY: Final = "targets; shadows held fixed"
POINTS_ONLY: Final = "points; shadows held fixed"
Over = Literal["targets with their shadows", "targets; shadows held fixed", "points; shadows held fixed"]
"""What the interval of a difference lets vary, beside points: see ``orchestrator.compared.significance``."""


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

    ``identical``: of every attack that is compared both have the same scores, point by point. ``left_out``: what of
    each side is not compared with the other; ``matched``: what is compared under two names, or under one that the plans
    give to different methods; ``controls_only``: nothing but controls is compared.
    """

    first: str
    second: str
    paired: str
    reason: str
    identical: bool = False
    left_out: tuple[str, ...] = ()
    matched: tuple[str, ...] = ()
    controls_only: bool = False


@dataclass(frozen=True, kw_only=True)
class DifferenceRow:
    """A metric of the second side minus that of the first.

    ``second_attack``: the name in the second side, where it is another; ``control``: of a control. ``over``: what the
    interval lets vary; ``identical``: both sides have the same scores (of a rate: the
    same decisions), point by point. ``p_holm`` and ``differs``:
    after Holm's correction over the rows that can be significant; null and false of others.
    """

    first: str
    second: str
    setting: str
    attack: str
    second_attack: str | None = field(default=None, metadata=SPARSE)
    control: bool = False
    metric: str
    promised_fpr: float | None
    first_value: float
    second_value: float
    difference: Estimate = field(metadata=keys("difference", "low", "high"))
    p: float | None
    p_holm: float | None = None
    differs: bool = False
    over: Over
    identical: bool = False
    paired: str
    shared_targets: int
    first_targets: int
    second_targets: int
    shared_points: int

    @property
    def name(self) -> str:
        """The metric with its nominal rate."""
        return self.metric if self.promised_fpr is None else f"{self.metric} at {self.promised_fpr * 100:g} %"

    @property
    def both(self) -> str:
        """The attack, by both its names where the sides call it differently."""
        if self.second_attack is None:
            return self.attack
        (one, _, attack), (other, _, other_attack) = (
            name.rpartition(".") for name in (self.attack, self.second_attack)
        )
        if attack == other_attack:
            return f"{one} → {other}: {attack}"
        return f"{self.attack} → {self.second_attack}"


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
        """Whether all values that are compared are the same, point by point."""
        return all(row.identical for row in self.table)

    @property
    def whole(self) -> bool:
        """Whether whole runs are compared: no attack is left out, and no score or decision that metrics leave out."""
        left_out = any(pair.left_out or not pair.identical for pair in self.pairs)
        return not (left_out or self.plan["options"]["attacks"] or any(side.setting for side in self.sides))

    def again(self) -> str:
        """Return the command that compares the same runs again."""
        return self.command
