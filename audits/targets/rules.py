"""Rules that name points of a data set without a file; read where a plan is checked, long before NumPy is there."""

from __future__ import annotations

import re

RULES = "all, even, odd, or START:STOP"
NAMED = ("all", "even", "odd")
SLICE = re.compile(r"([0-9]*):([0-9]*)")


def is_rule(members: str) -> bool:
    """Say whether ``members`` is a rule, not the name of a file."""
    return members in NAMED or SLICE.fullmatch(members) is not None
