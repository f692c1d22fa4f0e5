"""The toy kind, registered, and a bench for it."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.kinds import KINDS
from tests.orchestrator.toy.bench import Bench


@pytest.fixture(scope="module", autouse=True)
def registered() -> Any:
    """Register the kind, by one line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(KINDS, "toy", "tests.orchestrator.toy.kind:KIND")
        yield


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("toy"))
