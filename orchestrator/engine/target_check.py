"""The look at a plan's target that every command takes before any work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.engine.given_files import target_of
from orchestrator.engine.kind import load

if TYPE_CHECKING:
    from orchestrator.engine.kind import Design

CHECK_ASKED = "orchestrator.engine.run.answered:check_asked"
"""Imported where there is a target, for it takes torch."""


def check_target_of(design: Design) -> None:
    """Refuse a given model that cannot answer about the points that a design asks about; others are not looked at."""
    if target_of(design.plan) is not None:
        load(CHECK_ASKED)(design)
