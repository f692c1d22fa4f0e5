"""The verdict of a comparison: which run leaks less, which differences are significant, how large one would be seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

from audits.statistics.intervals import student_quantile
from audits.statistics.power import POWER
from orchestrator.compared.leaks import said_of_leaks
from orchestrator.compared.rows import POINTS_ONLY, SHADOWS_TOO, CompareResult, DifferenceRow
from orchestrator.compared.significance import in_family
from orchestrator.compared.wording import listed, name_of
from orchestrator.judgement.rows import DIFFERENT, UNTOLD, Finding, Verdict
from orchestrator.judgement.wording import FOUR_IN_FIVE, METRICS, rounded
from orchestrator.report.numbers import estimate

MOST_NAMED = 3
LEAST = 0.01
"""Differences are reported with two digits."""


def answer(run: CompareResult) -> Verdict:
    """Return the verdict of a comparison, one finding for each difference."""
    tests = sum(map(in_family, run.table))
    found = [finding(run, row, tests) for row in run.table]
    significant = [row for row in run.table if row.differs]
    untold = [each for each, row in zip(found, run.table, strict=True) if in_family(row) and not row.differs]
    fixed = [row for row in run.table if row.over != SHADOWS_TOO and not row.identical]
    said = [*said_of_left_out(run)]
    if run.identical:
        said.append(said_of_identical(run))
    else:
        said += [
            *said_of_leaks(run),
            *(said_of_significant(run, significant, tests) if tests else []),
            *said_of_untold(untold),
            *said_of_fixed(fixed),
        ]
    return Verdict(
        level=DIFFERENT if significant else UNTOLD,
        headline=" ".join(said),
        findings=tuple(found),
        tested=f"{len(run.sides)} {'settings' if run.sides[0].setting else 'runs'} "
        f"({', '.join(side.label for side in run.sides)}): {len(run.table)} differences",
        access=(),
        certainty=f"{run.covers} {family(run, tests)} {FOUR_IN_FIVE}",
        controls=(),
        advice=advice(run, significant, fixed),
    )


def family(run: CompareResult, tests: int) -> str:
    """Return in a sentence which differences are corrected together."""
    same = sum(row.identical for row in run.table)
    out = f" {same} of identical values are no tests." if same else ""
    if not tests:
        return f"No difference is tested.{out}"
    return f"{tests} of {len(run.table)} differences are corrected together (Holm), their intervals are not.{out}"


def said_of_left_out(run: CompareResult) -> list[str]:
    """Return what is compared with nothing, and that only controls are compared where that is so."""
    said = list(dict.fromkeys(text for pair in run.pairs for text in pair.left_out))
    return said + [
        f"Only controls of {pair.first} and {pair.second} are compared: name the methods that belong together with "
        "--match A=B."
        for pair in run.pairs
        if pair.controls_only
    ]


def said_of_identical(run: CompareResult) -> str:
    """Return the sentence on sides of which all that is compared is the same."""
    if run.whole:
        return "The scores are identical, point by point: this is the same audit twice."
    return "What is compared is identical, point by point."


def advice(run: CompareResult, significant: Sequence[DifferenceRow], fixed: Sequence[DifferenceRow]) -> str:
    """Return what to do with the answer."""
    if run.identical:
        return (
            "Compare runs that differ in their seed, plan or code."
            if run.whole
            else "What differs between the two does not reach these values; compare others, or settings further apart."
        )
    if significant:
        return "Quote only differences that are significant after the correction, with their intervals."
    if fixed:
        return (
            "Do not conclude from scores of one set of shadow models. Repeat both audits with other seeds, or with "
            "several targets that have shadow models of their own, and compare again."
        )
    return "Do not conclude that nothing differs. More targets or points would show smaller differences."


def finding(run: CompareResult, row: DifferenceRow, tests: int) -> Finding:
    """Return one difference as a finding."""
    size = estimate(row.difference, signed=True)
    if row.differs:
        text = f"statistically significant, {size}"
    elif row.identical:
        text = "no difference, identical scores"
    elif row.over != SHADOWS_TOO:
        text = f"{size} over {row.over}"
    else:
        text = f"not statistically significant, {size}"
    return Finding(
        setting=row.setting,
        subject=name_of(run, row),
        level=DIFFERENT if row.differs else UNTOLD,
        text=text,
        attack=row.attack,
        metric=row.metric,
        value=row.difference,
        chance=0.0,
        seen_from=smallest(row, run.level, tests) if in_family(row) and not row.differs else None,
    )


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


def said_of_significant(run: CompareResult, significant: Sequence[DifferenceRow], tests: int) -> list[str]:
    """Return the sentence on the differences that are significant, the largest of them by name."""
    if not significant:
        of = "the one comparison" if tests == 1 else f"{tests} comparisons"
        return [f"No difference is statistically significant after correction for {of}."]
    verb = "is" if len(significant) == 1 else "are"
    count = f"{len(significant)} of {tests} differences {verb} statistically significant"
    largest = sorted(significant, key=lambda row: -abs(float(row.difference)))[:MOST_NAMED]
    named = "; ".join(f"{name_of(run, row)} {estimate(row.difference, signed=True)}" for row in largest)
    more = f" and {len(significant) - MOST_NAMED} more" if len(significant) > MOST_NAMED else ""
    return [f"{count}: {named}{more}."]


def said_of_untold(untold: Sequence[Finding]) -> list[str]:
    """Return the sentence on the differences that are not significant, and how large one would have been seen."""
    if not untold:
        return []
    worst: dict[str, float] = {}
    for each in untold:
        worst[each.metric] = max(worst.get(each.metric, 0.0), math.inf if each.seen_from is None else each.seen_from)
    seen = [f"{rounded(max(size, LEAST), up=True)} in {METRICS[name]}" for name, size in worst.items() if size < 1.0]
    blind = [METRICS[name] for name, size in worst.items() if size >= 1.0]
    parts = [f"differences of at least {listed(seen)} would have been seen"] if seen else []
    parts += [f"in {listed(blind)} any difference could have been missed"] if blind else []
    many = "One cannot be distinguished" if len(untold) == 1 else f"{len(untold)} cannot be distinguished"
    return [f"{many} from zero: {'; '.join(parts)}."]


def said_of_fixed(fixed: Sequence[DifferenceRow]) -> list[str]:
    """Return the sentence on the differences of which the interval holds shadow models fixed."""
    if not fixed:
        return []
    over = fixed[0].over if len({row.over for row in fixed}) == 1 else "points or targets; shadows held fixed"
    what = "One difference is" if len(fixed) == 1 else f"{len(fixed)} differences are"
    cause = "models and shadow models" if over == POINTS_ONLY else "shadow models"
    return [f"{what} known over {over}: with other {cause} they may vanish or turn, so none is called significant."]
