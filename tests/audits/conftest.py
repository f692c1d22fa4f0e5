"""Fixtures of tests of the library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from audits.tmia.attacks.network import Network


@pytest.fixture
def few_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train attack networks briefly, for tests of what an attack reads and returns, whatever it finds."""
    fitted = Network.fitted

    def briefly(self: Network, *given: Any) -> Callable[..., Any]:
        return fitted(replace(self, epochs=min(self.epochs, 4)), *given)

    monkeypatch.setattr(Network, "fitted", briefly)
