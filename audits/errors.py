"""Errors that a user can meet: one line that names the bad value, what is allowed and what to do."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class BadInput(ValueError):
    """The plan, the data or an option cannot be used as given (exit code 2)."""


class ServerSilent(RuntimeError):
    """A served model did not answer for as long as it was waited for (exit code 3)."""


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest allowed word, or an empty string."""
    close = difflib.get_close_matches(word, list(allowed), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""
