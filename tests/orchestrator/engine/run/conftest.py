"""What tests of runs compare with, and a place in the middle of one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from orchestrator.engine.store.store import Store
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


@pytest.fixture
def at_job(monkeypatch: pytest.MonkeyPatch) -> Callable[[int, Callable[[], None]], None]:
    """Return a function by which something is done before the n-th job of stage score."""

    def before(number: int, action: Callable[[], None]) -> None:
        count = 0
        real = Store.put

        def put(self: Store, stage: str, *arguments: Any, **named: Any) -> None:
            nonlocal count
            if stage == "score":
                count += 1
                if count == number:
                    action()
            real(self, stage, *arguments, **named)

        monkeypatch.setattr(Store, "put", put)

    return before
