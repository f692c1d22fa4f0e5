"""Confidence reconstruction: a map from the distance to the decision boundary to the confidence of y*.

Source: Chen et al., Journal on Communications 42(10), 2021: with labels alone, the noise ‖x_adv − x‖₂ that HopSkipJump
needs is mapped to a confidence by least squares. The regression they chose is lost. Reconstructed here: where logits
are locally linear the margin is ‖∇m‖·d, so p = sigmoid(a + b·d) with b > 0 is the default; isotonic regression is the
non-parametric alternative, and polynomials stand for the paper's "choose by the look of the scatter".

One rising map applied to target and reference models alike leaves their rank p-values as they are, but for ties: where
a map is flat (isotonic steps, polynomials held at their ends, a sigmoid or a clipped loss near 1) p can only grow. A
polynomial that falls somewhere changes ranks. Distances ranked directly need no map.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from audits.arrays import Floats
from audits.errors import BadInput, did_you_mean

SOURCES = ("reference", "paper")
LEAST_SLOPE = 1e-6  # of the logit, per standard deviation of the distances
STARTS = (1.0, 0.1, 10.0)  # slopes, in the same unit


@dataclass(frozen=True)
class Pairs:
    """Distances and confidences (N,), float64 and finite; ``dropped``: pairs left out because one of the two was not.

    ``source``: "reference" or "paper", see :func:`make_pairs`.
    """

    distance: Floats
    confidence: Floats
    dropped: int
    source: str


def make_pairs(
    source: str, distance: ArrayLike, confidence: ArrayLike, points: ArrayLike, candidates: ArrayLike
) -> Pairs:
    """Return the pairs that a map is fitted to, from P points of the attacker's with ids ``points`` (P,).

    "reference": ``distance`` and ``confidence`` (n_ref, P) of the same reference models; one pair a model and point.
    "paper": ``distance`` (P,) of the target, ``confidence`` (n_ref, P) of reference models; one pair a point, with the
    mean of the finite confidences (R: least squares with one pair a model has the same minimum).

    Raises BadInput when a point is among ``candidates`` (ids): whether it is a member would enter the map; also for
    shapes that do not fit and finite confidences outside [0, 1]. Not finite values are dropped and counted.
    """
    if source not in SOURCES:
        raise BadInput(f"source {source!r}{did_you_mean(source, SOURCES)}; allowed: {', '.join(SOURCES)}")
    d, c = np.asarray(distance, np.float64), np.asarray(confidence, np.float64)
    ids = np.asarray(points)
    if c.ndim != 2 or ids.shape != c.shape[1:] or d.shape != (c.shape if source == "reference" else ids.shape):
        wanted = "(n_ref, points)" if source == "reference" else "(points,)"
        raise BadInput(
            f"distance {d.shape}, confidence {c.shape} and points {ids.shape} do not fit; allowed for source {source}: "
            f"{wanted}, (n_ref, points) and (points,)"
        )
    shared = np.intersect1d(ids, np.asarray(candidates))
    if shared.size:
        raise BadInput(
            f"{shared.size} of {ids.size} points of the fit are candidates (first: id {shared[0]}); "
            "take points that are not asked about"
        )
    finite = np.isfinite(c)
    if ((c[finite] < 0) | (c[finite] > 1)).any():
        raise BadInput(f"confidences reach from {c[finite].min():g} to {c[finite].max():g}; allowed: 0 to 1")
    if source == "paper":
        c = np.where(finite, c, 0.0).sum(0) / np.where(finite.any(0), finite.sum(0), np.nan)
    use = np.isfinite(d) & np.isfinite(c)
    return Pairs(d[use], c[use], int((~use).sum()), source)


@dataclass(frozen=True)
class Map(ABC):
    """A fitted map. ``rmse``: root mean square error of the confidence on its own ``pairs`` pairs."""

    rmse: float = field(default=math.nan, kw_only=True)
    pairs: int = field(default=0, kw_only=True)
    dropped: int = field(default=0, kw_only=True)

    @property
    @abstractmethod
    def name(self) -> str:
        """The map's name in tables, such as ``polynomial-3``."""

    @abstractmethod
    def _confidence(self, distance: Floats) -> Floats:
        """Return the confidence of distances that are not NaN."""

    def predict(self, distance: ArrayLike) -> Floats:
        """Return confidences in [0, 1], float64, in the shape of ``distance``; NaN (failed) stays NaN, ±inf may be."""
        d = np.asarray(distance, np.float64)
        failed = np.isnan(d)
        return np.where(failed, np.nan, np.clip(self._confidence(np.where(failed, 0.0, d)), 0.0, 1.0))

    def error(self, pairs: Pairs) -> float:
        """Return the root mean square error of the confidence on any ``pairs``, such as held-out ones."""
        return float(np.sqrt(np.mean((self.predict(pairs.distance) - pairs.confidence) ** 2)))


@dataclass(frozen=True)
class Logistic(Map):
    """p = sigmoid(a + b·d), b > 0."""

    a: float
    b: float

    @property
    def name(self) -> str:
        return "logistic"

    def _confidence(self, distance: Floats) -> Floats:
        return _sigmoid(self.a + self.b * distance)


@dataclass(frozen=True)
class Isotonic(Map):
    """The rising step-and-line function through ``values`` at ``knots`` (both (k,)), flat beyond the outer knots."""

    knots: Floats
    values: Floats

    @property
    def name(self) -> str:
        return "isotonic"

    def _confidence(self, distance: Floats) -> Floats:
        return np.interp(distance, self.knots, self.values)


@dataclass(frozen=True)
class Polynomial(Map):
    """A polynomial in (d − centre)/scale, constant term first, cut at 0 and 1 and held at its value at low and high.

    ``low`` and ``high`` are the ends of the fitted distances: beyond them a polynomial says nothing. It may fall.
    """

    coefficients: Floats
    centre: float
    scale: float
    low: float
    high: float

    @property
    def name(self) -> str:
        return f"polynomial-{len(self.coefficients) - 1}"

    def _confidence(self, distance: Floats) -> Floats:
        z = (np.clip(distance, self.low, self.high) - self.centre) / self.scale
        return np.asarray(np.polynomial.polynomial.polyval(z, self.coefficients), np.float64)


M = TypeVar("M", bound=Map)


def fit(name: str, pairs: Pairs, degree: int = 3) -> Map:
    """Return the map ``name``: "logistic", "isotonic" or "polynomial" (of ``degree``), fitted to ``pairs``.

    Raises BadInput for other names and for too few pairs, as :func:`fit_logistic` and the others do.
    """
    known: dict[str, Callable[[Pairs], Map]] = {
        "logistic": fit_logistic,
        "isotonic": fit_isotonic,
        "polynomial": lambda given: fit_polynomial(given, degree),
    }
    if name not in known:
        raise BadInput(f"map {name!r}{did_you_mean(name, known)}; allowed: {', '.join(known)}")
    return known[name](pairs)


def fit_logistic(pairs: Pairs) -> Logistic:
    """Return the logistic map of least squared error of the confidence (nonlinear least squares, three fixed starts).

    Where confidence does not rise with distance, b rests at its lower bound, 1e-6 per standard deviation.
    """
    from scipy.optimize import least_squares

    _check(pairs, 2, "logistic")
    centre, scale = float(pairs.distance.mean()), float(pairs.distance.std())
    z = (pairs.distance - centre) / scale

    def residuals(at: Floats) -> Floats:
        return _sigmoid(at[0] + at[1] * z) - pairs.confidence

    def jacobian(at: Floats) -> Floats:
        p = _sigmoid(at[0] + at[1] * z)
        return np.stack([p * (1 - p), p * (1 - p) * z], axis=1)

    mean = float(np.clip(pairs.confidence.mean(), 1e-3, 1 - 1e-3))
    bounds, exact = ([-np.inf, LEAST_SLOPE], np.inf), {"xtol": 1e-12, "ftol": 1e-12, "gtol": 1e-12}
    starts = [[math.log(mean / (1 - mean)), slope] for slope in STARTS]
    found = [least_squares(residuals, start, jacobian, bounds=bounds, **exact) for start in starts]
    a, b = min(found, key=lambda result: float(result.cost)).x
    return _measured(Logistic(float(a - b * centre / scale), float(b / scale)), pairs)


def fit_isotonic(pairs: Pairs) -> Isotonic:
    """Return the rising map of least squared error; pairs of equal distance share one value."""
    from sklearn.isotonic import IsotonicRegression

    _check(pairs, 2, "isotonic")
    model = IsotonicRegression(out_of_bounds="clip").fit(pairs.distance, pairs.confidence)
    knots, values = np.asarray(model.X_thresholds_, np.float64), np.asarray(model.y_thresholds_, np.float64)
    return _measured(Isotonic(knots, values), pairs)


def fit_polynomial(pairs: Pairs, degree: int) -> Polynomial:
    """Return the polynomial of ``degree`` ≥ 1 of least squared error, before it is cut at 0 and 1."""
    if degree < 1:
        raise BadInput(f"degree is {degree}; allowed: 1 (a line) or more")
    _check(pairs, degree + 1, f"polynomial-{degree}")
    d = pairs.distance
    centre, scale, low, high = float(d.mean()), float(d.std()), float(d.min()), float(d.max())
    weights = np.polynomial.polynomial.polyfit((d - centre) / scale, pairs.confidence, degree)
    coefficients = np.asarray(weights, np.float64)
    return _measured(Polynomial(coefficients, centre, scale, low, high), pairs)


def _measured(found: M, pairs: Pairs) -> M:
    """Return the map with its error on the pairs that it was fitted to, and their number."""
    return replace(found, rmse=found.error(pairs), pairs=pairs.distance.size, dropped=pairs.dropped)


def _check(pairs: Pairs, parameters: int, name: str) -> None:
    """Raise BadInput unless more pairs than parameters are there, at as many distinct distances."""
    distinct = np.unique(pairs.distance).size
    if pairs.distance.size <= parameters or distinct < parameters:
        raise BadInput(
            f"{name} needs more than {parameters} pairs at {parameters} or more distinct distances, got "
            f"{pairs.distance.size} at {distinct} (dropped: {pairs.dropped}); add points or reference models"
        )


def _sigmoid(value: Floats) -> Floats:
    """Return 1/(1 + e^−value) without overflow."""
    from scipy.special import expit

    return np.asarray(expit(value), np.float64)
