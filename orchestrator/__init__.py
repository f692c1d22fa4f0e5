"""orch from Python: ``audit``, ``sweep`` and ``Report`` (``orchestrator.api``), imported when they are first read."""

import importlib
from collections.abc import Callable
from typing import Any


def _offered() -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__``; the command line looks where ``audits`` lies before it imports that."""
    lazily = importlib.import_module("audits.lazy").lazily
    found: tuple[Callable[[str], Any], Callable[[], list[str]]] = lazily(
        __name__,
        {"orchestrator.api.report": ("Figure", "Report"), "orchestrator.api.runs": ("audit", "sweep")},
    )
    return found


def __getattr__(name: str) -> Any:
    return _offered()[0](name)


def __dir__() -> list[str]:
    return _offered()[1]()
