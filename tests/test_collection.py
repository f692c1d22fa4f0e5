"""Importing a test module does no work: data, models and plans are made in tests and fixtures.

All test files are imported by every process that runs some of them.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from tests.cases import collected

LIMIT = 1.5
"""CPU seconds of the module's own statements. More than .3 on a quiet machine is too much; on a busy one a module that
does nothing has been charged with .6, such as what the collector of garbage did meanwhile."""


def test_importing_a_test_module_does_no_work() -> None:
    assert __name__ in collected.OWN_SECONDS
    slow = {name: round(seconds, 2) for name, seconds in collected.OWN_SECONDS.items() if seconds > LIMIT}
    assert slow == {}, "move this into fixtures, cached functions or the tests"


def test_a_module_is_charged_with_its_own_statements_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hours = [0.0]
    monkeypatch.setattr(collected, "clock", lambda: hours[0])
    monkeypatch.setattr(sys, "hours", hours, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "inner_work.py").write_text("import sys\nsys.hours[0] += 5\n")
    (tmp_path / "outer_work.py").write_text("import sys\nsys.hours[0] += 1\nimport inner_work\nsys.hours[0] += 1\n")
    found: dict[str, float] = {}
    try:
        with collected.watching(found):
            importlib.import_module("outer_work")  # noqa: TID251  # a file that was just written
    finally:
        for name in ("inner_work", "outer_work"):
            sys.modules.pop(name, None)
    assert found == {"outer_work": 2.0, "inner_work": 5.0}
