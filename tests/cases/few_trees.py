"""Quantile regressions of a few trees, for tests of what an attack reads and returns, whatever it finds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

FEW = 4


@contextmanager
def few_trees() -> Iterator[None]:
    """Let scikit-learn boost ``FEW`` trees meanwhile, however many are asked for."""
    from sklearn import ensemble

    whole = ensemble.HistGradientBoostingRegressor

    def brief(**settings: Any) -> Any:
        return whole(**settings | {"max_iter": FEW})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensemble, "HistGradientBoostingRegressor", brief)
        yield
