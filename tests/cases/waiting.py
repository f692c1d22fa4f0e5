"""Waiting for what another thread does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def wait_for(what: Callable[[], Any]) -> Any:
    """Return what comes true by another thread's doing."""
    for _ in range(1200):
        if found := what():
            return found
        time.sleep(0.05)
    raise AssertionError("it does not come")
