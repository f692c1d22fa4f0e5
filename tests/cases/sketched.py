"""Pages whose figures are made but not drawn: drawing takes longest of a page, and kept runs have all theirs drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.report import writing


def sketched(makers: writing.Makers, folder: Path) -> dict[str, str]:
    """Make every figure; its file and its place on the page stay empty."""
    made = [name for name, make in makers.items() if make() is not None]
    folder.mkdir(exist_ok=True)
    for name in made:
        (folder / f"{name}.svg").touch()
    return dict.fromkeys(made, "<svg></svg>")


def sketch(patch: pytest.MonkeyPatch) -> None:
    """Let pages be written with sketched figures."""
    patch.setattr(writing, "draw", sketched)
