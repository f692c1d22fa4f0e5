"""The best of a sweep's settings, beside what the best would reach if no setting could see anything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from audits.statistics.best_of import best_settings
from orchestrator.report.numbers import number, percent, small_p
from orchestrator.report.rows import SPARSE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from audits.statistics.summary import Cell

BEST = "†"
"""What marks the best setting in a table."""


@dataclass(frozen=True, kw_only=True)
class BestRow:
    """The setting with the largest AUC of one attack (Apollo: on one unlearning method) among those of a sweep.

    ``null_median`` and ``null_high``: middle and upper end of the largest AUC of so many settings when membership means
    nothing (``audits.statistics.best_of``); ``p``: one-sided, of "no setting sees anything".
    """

    unlearner: str | None = field(default=None, metadata=SPARSE)
    attack: str
    setting: str
    settings: int
    auc: float
    null_median: float
    null_high: float
    p: float

    @property
    def place(self) -> tuple[str, str | None, str]:
        """Setting, unlearner and attack."""
        return self.setting, self.unlearner, self.attack


class Intervals(Protocol):
    """The section ``audit`` of a plan, as far as chance goes."""

    @property
    def level(self) -> float:
        """Confidence level."""
        ...

    @property
    def permutations(self) -> int:
        """Relabelings drawn."""
        ...


def best_rows(
    cells: Iterable[Cell],
    audit: Intervals,
    seed: int,
    groups: NDArray[np.int64] | None,
    *,
    unit: str = "target",
    unlearners: bool = True,
) -> tuple[BestRow, ...]:
    """Return the best setting of each attack and unlearning method; ``unlearners``: whether there are any."""
    found = best_settings(cells, level=audit.level, draws=audit.permutations, seed=seed, groups=groups, unit=unit)
    return tuple(
        BestRow(
            unlearner=best.unlearner if unlearners else None,
            attack=best.attack,
            setting=best.setting,
            settings=best.settings,
            auc=best.auc,
            null_median=best.median,
            null_high=best.high,
            p=best.p,
        )
        for best in found
    )


def best_lines(
    rows: Sequence[BestRow], name: Callable[[BestRow], str], level: float, tune: str = ""
) -> tuple[str, ...]:
    """Return the lines below a table that marks the best settings; ``tune``: the command that selects without targets.

    ``name`` says what a row is about.
    """
    if not rows:
        return ()
    lines = [f"{BEST} {name(row)}: {best_words(row, level)}" for row in rows]
    elsewhere = f"after `{tune}`, or on other targets" if tune else "on other targets"
    return (*lines, f"A setting picked on these targets looks better on them than it is; quote it {elsewhere}.")


def best_words(row: BestRow, level: float) -> str:
    """Return the best setting and what the best of so many would reach by chance."""
    p = small_p(row.p)
    return (
        f"best of {row.settings} settings: {row.setting}, AUC {number(row.auc)}. If nothing leaked, the best "
        f"of {row.settings} would still reach {number(row.null_high)} ({percent(level, 0)}): "
        f"p {p if p.startswith('<') else f'= {p}'}."
    )
