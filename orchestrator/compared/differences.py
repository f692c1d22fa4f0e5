"""Differences between sides: every metric of every attack that both have, paired where they share targets or points."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from audits.errors import BadInput, did_you_mean
from audits.statistics.judged import Judged
from audits.statistics.paired import AUC, FPR, METRICS, PRECISION, TPR, Measured, difference, measured
from audits.statistics.shared_targets import Same, same_values, shared_targets
from orchestrator.compared.data import same_data
from orchestrator.compared.matching import Match, few, fitting, left_out, matched
from orchestrator.compared.names import numbered
from orchestrator.compared.rows import DifferenceRow, PairRow
from orchestrator.compared.sides import Said, Side
from orchestrator.compared.significance import corrected, interval_over
from orchestrator.judgement.estimate import Estimate

ALL, SOME, POINTS, NOTHING = "targets", "some targets", "points", "nothing"
ORDER = (ALL, SOME, POINTS, NOTHING)
NOMINAL = re.compile(r"\d*\.?\d+(e-?\d+)?")


def pairs_of(sides: Sequence[Side], all_pairs: bool) -> list[tuple[Side, Side]]:
    """Return every other side beside the first, or all pairs."""
    return list(combinations(sides, 2)) if all_pairs else [(sides[0], other) for other in sides[1:]]


def compared(
    sides: Sequence[Side],
    *,
    metrics: Sequence[str],
    attacks: Sequence[str],
    level: float,
    all_pairs: bool = False,
    matches: Sequence[Match] = (),
) -> tuple[list[PairRow], list[DifferenceRow]]:
    """Return what is paired in each pair of sides, and all differences with Holm's correction.

    Raises BadInput for metrics and attacks that no two sides have, and for names to match that a side does not have.
    """
    for name in metrics:
        if name not in METRICS:
            raise BadInput(f"--metric {name!r}{did_you_mean(name, METRICS)}; allowed: {', '.join(METRICS)}")
    pairs: list[PairRow] = []
    rows: list[DifferenceRow] = []
    both = pairs_of(sides, all_pairs)
    for (first, second), own in zip(both, fitting(both, matches), strict=True):
        found = matched(first, second, own)
        names = list(dict.fromkeys(name for pair in found.pairs for each in pair for name in (each.name, each.attack)))
        for name in attacks:
            if name not in names:
                raise BadInput(
                    f"--attack {name!r}{did_you_mean(name, names)}: {first.label} and {second.label} both have "
                    f"{', '.join(dict.fromkeys(one.name for one, _ in found.pairs))}"
                )
        same, cause = same_data(first.data, second.data)
        chosen = [
            _alike(one, other, same)
            for one, other in found.pairs
            if not attacks or {one.name, one.attack, other.name, other.attack} & {*attacks}
        ]
        made = [row for each in chosen for row in rows_of(first, second, each, metrics, level, same)]
        if not made:
            raise BadInput(f"{first.label} and {second.label} have none of {', '.join(metrics)} in common")
        loosest = max(made, key=lambda row: ORDER.index(row.paired))
        equal = all(each.identical for each in chosen)
        rates = [] if metrics and not {TPR, FPR, PRECISION} & {*metrics} else rates_left_out(first, second, chosen)
        if not metrics or {TPR, PRECISION} & {*metrics}:
            rates += void_left_out(first, second, chosen)
        pairs.append(
            PairRow(
                first=first.label,
                second=second.label,
                paired=loosest.paired,
                reason=reason(cause, loosest) + (" Their scores are identical, point by point." if equal else ""),
                identical=equal,
                left_out=(*found.left_out, *rates),
                matched=found.named,
                controls_only=all(row.control for row in made),
            )
        )
        rows += made
    return pairs, corrected(rows, level)


@dataclass(frozen=True)
class Pair:
    """One attack of two sides, targets and points by numbers; ``same``: the values that are equal, point by point."""

    one: Said
    other: Said
    same: Same

    @property
    def identical(self) -> bool:
        """Whether scores, and the decisions that both have, are equal."""
        return self.same.scores and {*self.one.judged.decisions} & {*self.other.judged.decisions} == self.same.decisions

    def measured(self, metric: str, decision: str) -> tuple[Measured, Measured, bool]:
        """Return a metric of the other side and of the one, and whether the values that it is of are equal."""
        same = {TPR: self.same.hits, FPR: self.same.alarms}.get(metric, self.same.decisions)
        equal = self.same.scores if metric == AUC else decision in same
        return measured(self.other.judged, metric, decision), measured(self.one.judged, metric, decision), equal


def _alike(one: Said, other: Said, same_data: bool) -> Pair:
    """Return an attack of two sides with names that can be compared."""
    judged = numbered(one.judged, other.judged)
    same = same_values(*judged) if same_data else Same()
    return Pair(replace(one, judged=judged[0]), replace(other, judged=judged[1]), same)


def rows_of(
    first: Side, second: Side, pair: Pair, metrics: Sequence[str], level: float, same_data: bool
) -> Iterator[DifferenceRow]:
    """Yield the differences of an attack between two sides, second minus first."""
    one, other = pair.one, pair.other
    shared = shared_targets(other.judged, one.judged) if same_data else []
    for metric, decision in measures(one.judged, other.judged):
        if (metrics and metric not in metrics) or (
            metric in (TPR, PRECISION) and (void(first, one) or void(second, other))
        ):
            continue
        try:
            value, own, equal = pair.measured(metric, decision)
        except BadInput:
            continue  # precision is 0/0 in one of them
        found = difference(value, own, shared, same_data, level)
        if equal:  # in another order of rows they would differ by rounding errors
            found = replace(found, a=found.b, low=0.0, high=0.0, p=1.0)
        yield DifferenceRow(
            first=first.label,
            second=second.label,
            setting=one.setting,
            attack=one.name,
            second_attack=None if other.name == one.name else other.name,
            control=one.method in first.controls and other.method in second.controls,
            metric=metric,
            promised_fpr=float(decision) if NOMINAL.fullmatch(decision) else None,
            first_value=found.b,
            second_value=found.a,
            difference=Estimate(found.value, found.low, found.high),
            p=found.p,
            over=interval_over(one, other),
            identical=equal,
            paired=pairing(found.shared, found.targets, found.shared_points),
            shared_targets=found.shared,
            first_targets=found.targets[1],
            second_targets=found.targets[0],
            shared_points=found.shared_points,
        )


def void(side: Side, said: Said) -> bool:
    """Say whether an attack broke a nominal rate in the run of a side."""
    return said.place in side.void


def void_left_out(first: Side, second: Side, pairs: Sequence[Pair]) -> list[str]:
    """Return a sentence for each side in which attacks broke a nominal rate: their hit rates are not compared."""
    found = []
    for side, other, own in (
        (first, second, [each.one for each in pairs]), (second, first, [each.other for each in pairs]),
    ):  # fmt: skip
        if broken := dict.fromkeys("/".join(filter(None, each.place)) for each in own if void(side, each)):
            verb = "it broke" if len(broken) == 1 else "they broke"
            more = " and precision" if any("" in each.judged.decisions for each in own if void(side, each)) else ""
            found.append(
                f"In {side.label}, not compared with {other.label}: hit rates{more} of {few(broken)}, void "
                f"because {verb} a nominal false-positive rate."
            )
    return found


def rates_left_out(first: Side, second: Side, pairs: Sequence[Pair]) -> list[str]:
    """Return what is not compared of the rates of attacks that are: those that one side alone has decisions for."""
    common = {name for each in pairs for name in {*each.one.judged.decisions} & {*each.other.judged.decisions}}
    found: list[str] = []
    for side, other, sides in (
        (first, second, [(each.one, each.other) for each in pairs]),
        (second, first, [(each.other, each.one) for each in pairs]),
    ):
        attacks: dict[str, list[str]] = {}
        for own, others in sides:
            for name in own.judged.decisions.keys() - others.judged.decisions.keys():
                attacks.setdefault(name, []).append(own.name)
        found += left_out(
            side, other, [rate_of(name) + (f" of {', '.join(attacks[name])}" if name in common else "")
                          for name in sorted(attacks)],
        )  # fmt: skip
    return found


def rate_of(decision: str) -> str:
    """Return the name of what an attack decided."""
    return f"rates at {float(decision) * 100:g} %" if NOMINAL.fullmatch(decision) else "rates by the attack’s own rule"


def measures(one: Judged, other: Judged) -> list[tuple[str, str]]:
    """Return the metrics that two attacks have in common, each with the decision that it counts."""
    found = [(AUC, "")]
    for decision in one.decisions:
        if decision in other.decisions:
            found += [(metric, decision) for metric in ((TPR, FPR) if decision else (PRECISION, TPR, FPR))]
    return found


def pairing(shared: int, targets: tuple[int, int], points: int) -> str:
    """Return what two sides share, in a word."""
    if shared:
        return ALL if shared == targets[0] == targets[1] else SOME
    return POINTS if points else NOTHING


def reason(cause: str, row: DifferenceRow) -> str:
    """Return in a sentence what is paired, and why; ``cause``: why the data are not known to be the same, else ""."""
    sizes = f"{row.first_targets} and {row.second_targets}"
    if row.paired == ALL:
        count = f"all {row.shared_targets} targets were" if row.shared_targets > 1 else "the one target was"
        return f"Paired: {count} queried about the same points with the same members in both."
    if row.paired == SOME:
        return (
            f"Partly paired: {row.shared_targets} of {sizes} targets were queried about the same points with the same "
            "members; the others are not paired."
        )
    single = row.first_targets == row.second_targets == 1  # held fixed: nothing but points varies
    if row.paired == POINTS:
        vary = "" if single else f" Targets ({sizes}) vary independently, which makes intervals wider."
        return (
            f"Points are paired, targets are not: {row.shared_points} points are in both, but no target was queried "
            f"about the same points with the same members.{vary}"
        )
    if cause:
        return f"Unpaired: {cause}."
    vary = "" if single else f"; targets ({sizes}) and points vary independently"
    return f"Unpaired: no point is known to be in both{vary}."
