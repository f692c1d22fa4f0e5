"""The verdict of a comparison: which differences are real, which cannot be told, how large one would have been seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

from audits.statistics.intervals import student_quantile
from audits.statistics.power import POWER
from orchestrator.compared.rows import CompareResult, DifferenceRow
from orchestrator.report.numbers import estimate
from orchestrator.report.verdict import DIFFERENT, UNTOLD, Finding, Verdict
from orchestrator.report.verdict_words import FOUR_IN_FIVE, METRICS, rounded

MOST_NAMED = 3
LEAST = 0.01
"""Differences are told with two digits."""


def answer(run: CompareResult) -> Verdict:
    """Return the verdict of a comparison, one finding for each difference."""
    found = [finding(run, row) for row in run.table]
    real = [row for row in run.table if row.differs]
    return Verdict(
        level=DIFFERENT if real else UNTOLD,
        headline=" ".join(
            [said_of_identical(run)] if run.identical else [*said_of_real(run, real), *said_of_untold(found)]
        ),
        findings=tuple(found),
        tested=f"{len(run.sides)} {'settings' if run.sides[0].setting else 'runs'} "
        f"({', '.join(side.label for side in run.sides)}): {len(run.table)} differences",
        access=(),
        certainty=f"{run.covers} The {len(run.table)} differences are corrected together (Holm), their intervals are "
        f"not. {FOUR_IN_FIVE}",
        controls=(),
        advice=advice(run, real),
    )


def said_of_identical(run: CompareResult) -> str:
    """Return the sentence on sides that have the same scores."""
    if run.whole:
        return "The scores are identical, point by point: this is the same audit twice."
    return "The scores that are compared are identical, point by point."


def advice(run: CompareResult, real: Sequence[DifferenceRow]) -> str:
    """Return what to do with the answer."""
    if run.identical:
        return (
            "Compare runs that differ in their seed, plan or code."
            if run.whole
            else "What differs between the two does not reach these scores; compare others, or settings further apart."
        )
    if real:
        return "Quote only differences that are real after the correction, with their intervals."
    return "Do not conclude that nothing differs. More targets or points would show smaller differences."


def finding(run: CompareResult, row: DifferenceRow) -> Finding:
    """Return one difference as a finding."""
    size = estimate(row.difference, signed=True)
    return Finding(
        setting=row.setting,
        subject=name_of(run, row),
        level=DIFFERENT if row.differs else UNTOLD,
        text=f"a real difference, {size}"
        if row.differs
        else "no difference, identical scores"
        if run.identical
        else f"not told from zero, {size}",
        attack=row.attack,
        metric=row.metric,
        value=row.difference,
        chance=0.0,
        seen_from=None if row.differs or run.identical else smallest(row, run.level, len(run.table)),
    )


def name_of(run: CompareResult, row: DifferenceRow) -> str:
    """Return what a difference is of, with its setting and its sides where there are several."""
    setting = f"{row.setting}/" if len({each.setting for each in run.table}) > 1 else ""
    sides = f" ({row.second} − {row.first})" if len(run.pairs) > 1 else ""
    return f"{setting}{row.attack}, {row.name}{sides}"


def smallest(row: DifferenceRow, level: float, tests: int) -> float | None:
    """Return the smallest difference that would have been seen four times in five among so many; None without interval.

    By the wider side of the interval, as that of a normal distribution; Holm's first step is the hardest, so that the
    answer errs on the large side.
    """
    if not row.difference.bounded:
        return None
    certain = student_quantile(level, math.inf)
    needed = student_quantile(1.0 - (1.0 - level) / tests, math.inf) + student_quantile(2.0 * POWER - 1.0, math.inf)
    return max(row.difference.errors) * needed / certain


def said_of_real(run: CompareResult, real: Sequence[DifferenceRow]) -> list[str]:
    """Return the sentence on the differences that are real, the largest of them by name."""
    if not real:
        return [f"No difference is real after correction for {len(run.table)} comparisons."]
    count = f"{len(real)} of {len(run.table)} differences {'is' if len(real) == 1 else 'are'} real"
    largest = sorted(real, key=lambda row: -abs(float(row.difference)))[:MOST_NAMED]
    named = "; ".join(f"{name_of(run, row)} {estimate(row.difference, signed=True)}" for row in largest)
    more = f" and {len(real) - MOST_NAMED} more" if len(real) > MOST_NAMED else ""
    return [f"{count}: {named}{more}."]


def said_of_untold(found: Sequence[Finding]) -> list[str]:
    """Return the sentence on the differences that cannot be told, and how large one would have been seen, by metric."""
    untold = [each for each in found if each.level == UNTOLD]
    if not untold:
        return []
    worst: dict[str, float] = {}
    for each in untold:
        worst[each.metric] = max(worst.get(each.metric, 0.0), math.inf if each.seen_from is None else each.seen_from)
    seen = [f"{rounded(max(size, LEAST), up=True)} in {METRICS[name]}" for name, size in worst.items() if size < 1.0]
    blind = [METRICS[name] for name, size in worst.items() if size >= 1.0]
    parts = [f"differences of at least {listed(seen)} would have been seen"] if seen else []
    parts += [f"in {listed(blind)} any difference could have been missed"] if blind else []
    many = "One cannot be told" if len(untold) == 1 else f"{len(untold)} cannot be told"
    return [f"{many} from zero: {'; '.join(parts)}."]


def listed(names: Sequence[str]) -> str:
    """Return a list in words."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
