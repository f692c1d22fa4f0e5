"""Simulations in two sizes: a short one that finds what is wrong by much, and the whole one, which is marked long."""

from __future__ import annotations

import pytest
from scipy.special import ndtr, stdtrit

LEAST = 8
"""Runs of a short simulation at least."""


def sizes(short: float) -> pytest.MarkDecorator:
    """Run a test with ``size`` at ``short``, a share of its runs, and marked long at 1."""
    return pytest.mark.parametrize("size", [short, pytest.param(1, id="whole", marks=pytest.mark.long)])


def fewer(runs: int, size: float) -> int:
    """Return the number of runs of a simulation that has ``runs`` as a whole."""
    return max(int(runs * size), min(LEAST, runs))


def standard_errors(runs: int, size: float) -> float:
    """Return how many of its standard errors a mean over ``runs`` may be off.

    3.5 of the whole simulation; of few runs as many as are exceeded that rarely by Student's t.
    """
    return 3.5 if size == 1 else float(stdtrit(runs - 1, ndtr(3.5)))
