"""What tests of runs on clusters compare with."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.orchestrator.engine.run.small_plans import scores, small_plan


@pytest.fixture(scope="session")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], bytes]:
    """The scores of a kind's plan, made in one process without Ray."""
    found: dict[str, bytes] = {}

    def scores_of(kind: str) -> bytes:
        if kind not in found:
            place = tmp_path_factory.mktemp(kind)
            found[kind] = scores(small_plan(kind, place / "store"), place / "out")
        return found[kind]

    return scores_of
