"""What a store refuses, in one line and as bad input."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from audits.errors import BadInput
from orchestrator.engine.store.faults import StoreRefused


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(StoreRefused) as error:
        act()
    assert isinstance(error.value, BadInput)
    assert "\n" not in str(error.value)
    return str(error.value)
