"""The toy kind, registered, and a bench for it."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from orchestrator.kinds import KINDS
from tests.orchestrator.toy import kind, page
from tests.orchestrator.toy.bench import Bench

MODULES = {name: module for name, module in sys.modules.items() if name.startswith(kind.__package__)}
assert page.__name__ in MODULES


@pytest.fixture(scope="module", autouse=True)
def registered() -> Any:
    """Register the kind, by one line; its modules are those that tests see, whoever has forgotten users' modules."""
    with pytest.MonkeyPatch.context() as patch:
        for name, module in MODULES.items():
            patch.setitem(sys.modules, name, module)
        patch.setitem(KINDS, "toy", "tests.orchestrator.toy.kind:KIND")
        yield


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("toy"))
