"""The privacy that DP-SGD spends: (ε, δ) under adding or removing one point, and the noise that keeps it to a target.

``recipe.accountant`` names how it is counted, for both engines alike:

- prv: Opacus' numerical composition of privacy loss variables (Gopi et al., arXiv 2106.02848) for the Gaussian
  mechanism on batches drawn by coins. ε lies within ``ERROR`` of its estimate, up to δ/1000; what is reported is the
  upper end, and the lower end beside it. Opacus follows the loss of removing a point, which dominates that of adding
  one at each step (Zhu et al., arXiv 2106.08567); that it does so composed is taken over from there.
- rdp: Opacus' accountant of Rényi divergences (Mironov et al., arXiv 1908.10530), the smallest bound over the orders
  1.1 to 10.9 in steps of 0.1, 12 to 63, 128, 256, 512 and 1024. The divergence at each order is exact; turning it into
  (ε, δ) is an upper bound, loose by a tenth and more, and nothing bounds it from below.

Both are upper bounds. Where rdp is the smaller one, or the grid of prv would leave the range of float64's exponential
(ε of some hundreds), rdp stands, and is named.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from audits.errors import BadInput
from audits.gradients.model_copies import quiet
from audits.training.engines.base import opacus
from audits.training.recipe import Recipe

MOST_NOISE = 1e6
ORDERS = (*(1 + x / 10 for x in range(1, 100)), *range(12, 64), 128, 256, 512, 1024)  # of the Rényi divergence
ERROR = 0.002
"""Half the width of the interval that prv leaves of ε, of what rdp says; more where the grid would be too fine."""
DELTA_ERROR = 1e-3  # of δ
GRID = 2**22  # points at most
LARGEST = 700.0  # of the losses on the grid: exp of more is not a float64


@dataclass(frozen=True)
class Spent:
    """The guarantee (``epsilon``, ``delta``) that ``accountant`` counts.

    ``epsilon`` is an upper bound of what the mechanism spends at δ, ``low`` a lower one by the same accountant, None
    where it has none: how far the counting itself may be off, nothing about an attack.
    """

    epsilon: float
    delta: float
    accountant: str
    low: float | None = None


def steps_per_epoch(recipe: Recipe, points: int) -> int:
    """Return the steps that draw every point once on average; each point is in a batch with probability 1/steps."""
    return math.ceil(points / recipe.batch_size)


def delta_of(recipe: Recipe, points: int) -> float:
    """Return δ of the guarantee: the recipe's, or a tenth of 1/``points``."""
    return 0.1 / points if recipe.delta is None else recipe.delta


def spent_epsilon(recipe: Recipe, points: int) -> float:
    """Return ε of the (ε, δ) guarantee that a model trained on ``points`` points has; infinite without any noise."""
    return spent(recipe, points).epsilon


def spent(recipe: Recipe, points: int) -> Spent:
    """Return what a training on ``points`` points spends; ε is infinite without any noise, and 0 without a step."""
    if not recipe.private:
        return Spent(math.inf, delta_of(recipe, points), recipe.accountant)
    return spent_with(recipe, noise_of(recipe, points), points)


def spent_with(recipe: Recipe, sigma: float, points: int, accountant: str | None = None) -> Spent:
    """Return what all steps of ``recipe`` spend with the noise multiplier ``sigma``; ``accountant`` as the recipe's."""
    delta, how = delta_of(recipe, points), accountant or recipe.accountant
    if recipe.epochs == 0:
        return Spent(0.0, delta, how, 0.0)
    if sigma == 0:
        return Spent(math.inf, delta, how)
    steps = steps_per_epoch(recipe, points)
    history = (float(sigma), 1 / steps, steps * recipe.epochs)
    return (by_prv if how == "prv" else by_rdp)(history, delta)


@functools.cache
def divergences_once() -> None:
    """Let Opacus compute a divergence once for each rate, σ and order: prv alone asks for all of them five times."""
    rdp = opacus("accountants.analysis.rdp")
    rdp._compute_rdp = functools.lru_cache(maxsize=2**16)(rdp._compute_rdp)


@functools.cache
def by_rdp(history: tuple[float, float, int], delta: float) -> Spent:
    """Return what (σ, sampling rate, steps) spends at ``delta`` by Rényi divergences."""
    divergences_once()
    accountant = opacus("accountants").RDPAccountant()
    accountant.history = [history]
    with quiet():
        return Spent(float(accountant.get_epsilon(delta, alphas=list(ORDERS))), delta, "rdp")


@functools.cache
def by_prv(history: tuple[float, float, int], delta: float) -> Spent:
    """Return what (σ, sampling rate, steps) spends at ``delta`` by privacy loss variables; rdp where that is less."""
    bound, least = by_rdp(history, delta), DELTA_ERROR * delta
    # The width of the grid is about ε at a fraction of δ; see Opacus' compute_safe_domain_size.
    width = max(by_rdp(history, least / 4).epsilon, by_rdp((*history[:2], 1), least / (8 * history[2])).epsilon) + 4
    fineness = math.sqrt(history[2] * math.log(12 / least) / 2)
    error = max(ERROR * bound.epsilon, 2 * width * fineness / GRID)
    if width > LARGEST:
        return bound
    accountant = opacus("accountants").PRVAccountant()
    accountant.history = [history]
    with quiet(), np.errstate(all="ignore"):  # at rate 1 the logarithm of 1 − rate is −∞, which is right
        try:
            losses = accountant._get_dprv(eps_error=error, delta_error=least)
            low, _, high = (float(value) for value in losses.compute_epsilon(delta, least, error))
        except (RuntimeError, ValueError):  # Opacus' own checks of its grid
            return bound
    if not high < bound.epsilon:
        return bound
    return Spent(max(high, 0.0), delta, "prv", max(low, 0.0))


def noise_of(recipe: Recipe, points: int) -> float:
    """Return the noise multiplier: the recipe's, or the smallest (to 1 %) whose ε is at most ``target_epsilon``.

    BadInput when no noise reaches the target.
    """
    if recipe.noise_multiplier is not None or recipe.target_epsilon is None or recipe.epochs == 0:
        return recipe.noise_multiplier or 0.0

    def enough(sigma: float, accountant: str | None = None) -> bool:
        return spent_with(recipe, sigma, points, accountant).epsilon <= float(recipe.target_epsilon or 0)

    # By rdp first, which is quick and asks for no less noise.
    low, high = 0.0, 1.0
    while not enough(high, "rdp"):
        low, high = high, 2 * high
        if high > MOST_NOISE:
            raise BadInput(
                f"recipe.target_epsilon is {recipe.target_epsilon}, which no noise reaches on {points} points with "
                f"delta {delta_of(recipe, points):g}; raise it, or train for fewer epochs"
            )
    low, high = halved(low, high, lambda sigma: enough(sigma, "rdp"))
    if recipe.accountant == "rdp":
        return high
    low = high / 2
    while enough(low):
        low, high = low / 2, low
    return halved(low, high, enough)[1]


def halved(low: float, high: float, enough: Callable[[float], bool]) -> tuple[float, float]:
    """Return ``low``, which is not ``enough``, and ``high``, which is, brought to within 1 % of each other."""
    while high - low > 0.01 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return low, high
