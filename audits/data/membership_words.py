"""Words by which tables say that a point was trained on, or was not."""

from __future__ import annotations

MEMBER_WORDS = frozenset({"1", "1.0", "true", "yes", "in", "member", "members", "train", "training"})
NON_MEMBER_WORDS = frozenset(
    {"0", "0.0", "false", "no", "out", "non-member", "nonmember", "non_member", "non member", "non-members"}
    | {"test", "testing", "val", "valid", "validation", "dev", "holdout"}
)
ALLOWED = "0/1, true/false, yes/no, in/out, member/non-member, or train against test, val or another part"
COLUMNS = ("member", "is_member", "membership", "split")
"""Columns that say which points were trained on."""


def membership_of(text: str) -> bool | None:
    """Return whether a text says member; None where it says neither."""
    word = text.strip().casefold()
    return True if word in MEMBER_WORDS else False if word in NON_MEMBER_WORDS else None
