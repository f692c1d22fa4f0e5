"""Errors that a user can meet: one line that names the bad value, what is allowed and what to do."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

PARTS = re.compile(r"[_\-. ]+")


class BadInput(ValueError):
    """The plan, the data or an option cannot be used as given (exit code 2)."""


class ServerSilent(RuntimeError):
    """A served model did not answer for as long as it was waited for (exit code 3)."""


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest allowed word, or an empty string.

    Capitals do not matter, and ``lr`` is close to ``learning_rate``, ``eps`` to ``max_epsilon``.
    """
    small = {name.lower(): name for name in reversed(list(allowed))}
    word = word.lower()
    close = difflib.get_close_matches(word, small, n=1, cutoff=0.75)
    close += [name for name in small if abbreviates(word, name)]
    close += difflib.get_close_matches(word, small, n=1, cutoff=0.6)
    return f" (did you mean {small[close[0]]!r}?)" if close else ""


def closest_first(word: str | None, allowed: Iterable[str]) -> list[str]:
    """Return the allowed words, those most like ``word`` first; as they are without one."""
    if word is None:
        return list(allowed)
    like = difflib.SequenceMatcher(b=word.lower(), autojunk=False)

    def distance(name: str) -> float:
        like.set_seq1(name.lower())
        return 1.0 - like.ratio()

    return sorted(allowed, key=distance)


def abbreviates(word: str, name: str) -> bool:
    """Say whether ``word`` is made of the first letters of the parts of ``name``, or begins one of them."""
    parts = PARTS.split(name)
    initials = "".join(part[:1] for part in parts)
    return (len(word) > 1 and word == initials) or (len(word) > 2 and any(part.startswith(word) for part in parts))


def how_many(number: int, thing: str) -> str:
    """Return a number of things in words: "1 setting", "2 settings"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
