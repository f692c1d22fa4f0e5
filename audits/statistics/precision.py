"""Precision and coverage of decisions "member" on T targets × K candidates, with intervals that cover all that varies.

Source: Chen et al., Journal on Communications 42(10), 2021: precision TP/(TP + FP), coverage TP over the member pairs
among the attacked ones. Beside them stand the false-positive rate on non-member pairs and the number of false positives
that the level β allows for. 0/0 is None, "undefined".

Targets, candidates and reference models are all samples. Reference models serve every decision, so that an interval
over targets alone says nothing about another draw of them (two draws gave false-positive rates with disjoint
intervals). :func:`measure` therefore resamples all three (the pigeonhole bootstrap; Owen, Annals of Applied Statistics
1, 2007, which does not understate the variance of crossed designs) and decides again with each draw's reference models.
A draw repeats some of them, so it ranks among fewer distinct ones and more p-values fall below β; the draws are
therefore shifted until their mean is the found rate (unshifted percentiles can lie wholly above it). Share of nominal
95 % intervals that hold the truth, lowest to highest over eight simulated cases (10–100 targets, 8–300 points of
unequal difficulty, 19–100 reference models), 200 repeats each:

==============================================  ============  ============  ============
Interval                                        precision     coverage      FPR
==============================================  ============  ============  ============
crossed (``low``, ``high``)                     .965–1.00     .955–1.00     .990–1.00
t over targets alone (``t_low``, ``t_high``)    .660–.980     .395–.910     .700–.995
==============================================  ============  ============  ============

The crossed interval is conservative, 1.5 to 6.5 times as wide as the other. To repeat:
``pytest tests/audits/statistics/test_precision.py -m long -s``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from audits.arrays import Bools, Floats
from audits.errors import BadInput
from audits.seeds import Purpose, derive_seed
from audits.statistics import intervals

Decide = Callable[[NDArray[np.int64]], Bools]
"""Decisions (T, K) with the reference models of the given rows, repeats allowed; see ``p_values.decider``."""


@dataclass(frozen=True)
class Tally:
    """Counts (T,) of attacked pairs per target, float64: true and false positives, member and non-member pairs."""

    true_positives: Floats
    false_positives: Floats
    members: Floats
    non_members: Floats

    @property
    def shares(self) -> dict[str, tuple[Floats, Floats]]:
        """Hits and trials (T,) of each rate: precision, coverage, fpr."""
        called = self.true_positives + self.false_positives
        return {
            "precision": (self.true_positives, called),
            "coverage": (self.true_positives, self.members),
            "fpr": (self.false_positives, self.non_members),
        }


@dataclass(frozen=True)
class Rate:
    """A rate with its intervals; ``value`` is None where it is 0/0, the ends are where there is no interval.

    ``low, high``: over targets, candidates and reference models; ``t_low, t_high``: over targets given the others;
    ``undefined``: share of the bootstrap draws in which the rate was 0/0, which the interval leaves out.
    """

    value: float | None
    low: float | None
    high: float | None
    t_low: float | None
    t_high: float | None
    undefined: float


@dataclass(frozen=True)
class Outcome:
    """Counts of attacked pairs and rates; ``expected_false_positives`` is β times the non-member pairs."""

    targets: int
    candidates: int
    true_positives: int
    false_positives: int
    members: int
    non_members: int
    expected_false_positives: float
    precision: Rate
    coverage: Rate
    fpr: Rate


def tally(decisions: ArrayLike, membership: ArrayLike, attacked: ArrayLike | None = None) -> Tally:
    """Return the counts of ``decisions`` (T, K) bool against ``membership`` (T, K) bool.

    ``attacked``: (K,) or (T, K) bool, which pairs are asked about at all; None for all. Decisions on others are
    ignored. Raises BadInput for shapes that do not fit.
    """
    member, asked = _masks(membership, attacked)
    said = _decided(decisions, member.shape) & asked
    return Tally(
        true_positives=(said & member).sum(1).astype(np.float64),
        false_positives=(said & ~member).sum(1).astype(np.float64),
        members=(asked & member).sum(1).astype(np.float64),
        non_members=(asked & ~member).sum(1).astype(np.float64),
    )


def t_over_targets(hits: ArrayLike, trials: ArrayLike, level: float = 0.95) -> tuple[float, float] | None:
    """Return the t interval of Σ hits / Σ trials, one entry (T,) a target, within [0, 1]: only targets vary.

    By the delete-one-target jackknife (:func:`audits.statistics.intervals.cluster_jackknife_t`), as a target may have
    no trials. At a rate of exactly 0 or 1 no variance can be seen: Clopper–Pearson over the trials. None where the rate
    is 0/0 with all targets or without one of them, and for a single target.
    """
    found, size = np.asarray(hits, np.float64), np.asarray(trials, np.float64)
    total, whole = float(found.sum()), float(size.sum())
    if whole == 0:
        return None
    if total in (0.0, whole):
        return intervals.clopper_pearson(total, whole, level)
    if found.size < 2 or (whole - size == 0).any():
        return None
    low, high = intervals.cluster_jackknife_t(lambda times: (times @ found) / (times @ size), found.size, level)
    return max(0.0, low), min(1.0, high)


def measure(
    decide: Decide,
    n_ref: int,
    membership: ArrayLike,
    beta: float,
    attacked: ArrayLike | None = None,
    *,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> Outcome:
    """Return counts, rates and intervals of the decisions of ``decide``, which works on ``n_ref`` reference models.

    ``decide(rows)`` gives decisions (T, K) bool at level ``beta`` from reference models ``rows`` (n_ref,); it is called
    once with each model once, then once a draw. ``membership`` (T, K) bool; ``attacked`` (K,) or (T, K) bool, which is
    not chosen again in the draws: intervals speak about these candidates' kind, given how they were selected.

    The interval has the width of the crossed bootstrap's percentile interval (module docstring). At a rate of exactly
    0 or 1 it is widened to Clopper–Pearson over the pairs. Raises BadInput for shapes that do not fit and where nothing
    is attacked.
    """
    member, asked = _masks(membership, attacked)
    shape = member.shape
    points = np.flatnonzero(asked.any(0))
    if n_ref < 1 or draws < 1:
        raise BadInput(f"n_ref is {n_ref} and draws is {draws}; allowed: 1 or more each")
    if not points.size:
        raise BadInput("no candidate is attacked; lower alpha or take more candidates")
    counts = tally(decide(np.arange(n_ref)), member, asked)
    member, asked = member[:, points], asked[:, points]
    targets = intervals.bootstrap_weights(len(member), draws, derive_seed(seed, Purpose.TARGETS))
    taken = intervals.bootstrap_weights(points.size, draws, derive_seed(seed, Purpose.CANDIDATES))
    rows = np.random.default_rng(derive_seed(seed, Purpose.REFERENCE_MODELS)).integers(n_ref, size=(draws, n_ref))
    drawn = np.empty((draws, 4))
    for draw in range(draws):
        said = _decided(decide(rows[draw]), shape)[:, points] & asked
        pairs = np.stack([said & member, said & ~member, asked & member, asked & ~member]).astype(np.float64)
        drawn[draw] = targets[draw] @ pairs @ taken[draw]
    again = Tally(*drawn.T).shares
    rates = {name: _rate(*share, *again[name], level) for name, share in counts.shares.items()}
    return Outcome(
        targets=len(member),
        candidates=points.size,
        true_positives=int(counts.true_positives.sum()),
        false_positives=int(counts.false_positives.sum()),
        members=int(counts.members.sum()),
        non_members=int(counts.non_members.sum()),
        expected_false_positives=beta * float(counts.non_members.sum()),
        **rates,
    )


def measure_null(
    decide: Decide,
    n_ref: int,
    beta: float,
    attacked: ArrayLike | None = None,
    *,
    level: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> Outcome:
    """Return :func:`measure` for null models in the targets' place, (F, K): models that saw no candidate.

    Every pair is a non-member pair and every call false: ``fpr`` with its interval says whether the level β holds,
    ``expected_false_positives`` is β·pairs; coverage is undefined.
    """
    nobody = np.zeros(np.shape(decide(np.arange(n_ref))), dtype=bool)
    return measure(decide, n_ref, nobody, beta, attacked, level=level, draws=draws, seed=seed)


def _rate(hits: Floats, trials: Floats, drawn_hits: Floats, drawn_trials: Floats, level: float) -> Rate:
    """Return the rate of ``hits`` in ``trials`` (T,) with the interval of its bootstrap draws (draws,)."""
    total, whole = float(hits.sum()), float(trials.sum())
    defined = drawn_trials > 0
    undefined = float((~defined).mean())
    if whole == 0 or not defined.any():
        return Rate(total / whole if whole else None, None, None, None, None, undefined)
    value, tail = total / whole, (1.0 - level) / 2.0
    drawn = drawn_hits[defined] / drawn_trials[defined]
    low, high = np.quantile(drawn, [tail, 1.0 - tail]) - (drawn.mean() - value)
    low, high = max(0.0, float(low)), min(1.0, float(high))
    if total in (0.0, whole):
        exact = intervals.clopper_pearson(total, whole, level)
        low, high = min(low, exact[0]), max(high, exact[1])
    t_low, t_high = t_over_targets(hits, trials, level) or (None, None)
    return Rate(value, low, high, t_low, t_high, undefined)


def _masks(membership: ArrayLike, attacked: ArrayLike | None) -> tuple[Bools, Bools]:
    """Return membership and what is attacked, both (T, K) bool."""
    member = np.asarray(membership)
    asked = np.ones(member.shape, dtype=bool) if attacked is None else np.asarray(attacked)
    if member.ndim != 2 or member.dtype != bool or asked.dtype != bool:
        raise BadInput(
            f"membership is {member.dtype} {member.shape} and attacked {asked.dtype} {asked.shape}; "
            "allowed: bool (targets, candidates), and bool (targets, candidates) or (candidates,)"
        )
    if asked.shape not in (member.shape, member.shape[1:]):
        raise BadInput(f"attacked has shape {asked.shape}; allowed: {member.shape} or {member.shape[1:]}")
    return member, np.broadcast_to(asked, member.shape)


def _decided(decisions: ArrayLike, shape: tuple[int, ...]) -> Bools:
    """Return decisions (T, K) as an array; refuse others than bool of ``shape``."""
    said = np.asarray(decisions)
    if said.shape != shape or said.dtype != bool:
        raise BadInput(f"decisions are {said.dtype} {said.shape}; allowed: bool {shape}, one for each pair")
    return said
