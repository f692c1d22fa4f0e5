"""orch from Python: ``audit``, ``sweep`` and ``Report`` (``orchestrator.api``), imported when they are first read.

Not by ``audits.lazy``: the command line looks first where ``audits`` lies.
"""

import importlib
from typing import Any

HOMES = {
    "Figure": "orchestrator.api.report",
    "Report": "orchestrator.api.report",
    "audit": "orchestrator.api.runs",
    "sweep": "orchestrator.api.runs",
}


def __getattr__(name: str) -> Any:
    """Import what is read for the first time."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(HOMES[name]), name)
    return found


def __dir__() -> list[str]:
    """Return the names, also of what is not imported yet."""
    return sorted({*globals(), *HOMES})
