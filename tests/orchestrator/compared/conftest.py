"""The toy kind is known to every test of comparisons."""

from __future__ import annotations

import pytest

from orchestrator.kinds import KINDS


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(KINDS, "toy", "tests.orchestrator.toy.kind:KIND")
