"""A folder with components of a user's own, which nothing of an earlier test shadows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from audits.own import sources
from orchestrator.engine.own_code import follow_edits
from tests.cases.own_components import write_components


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder: one with all components; modules imported from it are forgotten afterwards."""
    place = tmp_path / "mine"
    place.mkdir()
    write_components(place)
    monkeypatch.chdir(place)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield place
    for file in place.rglob("*.py"):
        file.unlink()
    follow_edits()
    assert not [module for module, file in sources.noted_files().items() if file.is_relative_to(place)]
