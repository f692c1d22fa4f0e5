"""JSON that somebody else may have written: whatever is wrong with it, nested without end too, is a ValueError."""

from __future__ import annotations

import json
from typing import Any


def from_json(text: bytes | str) -> Any:
    """Return the value of a JSON text; raises ValueError for what is none, or is nested too deeply to be read."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
