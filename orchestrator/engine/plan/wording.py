"""Small pieces that messages about plans are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

MOST_NAMED = 12


def multiple(number: int, of: int) -> int:
    """Return the next multiple of ``of`` from ``number`` on."""
    return -(-number // of) * of


def repeats(words: Iterable[str]) -> list[tuple[str, int]]:
    """Return the words that occur more than once, with their counts."""
    return [(word, count) for word, count in Counter(words).items() if count > 1]


def first_of(names: Sequence[str]) -> str:
    """Return the first names of a long list, with "…" behind them where there are more."""
    return ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
