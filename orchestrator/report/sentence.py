"""One sentence of a verdict."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sentence:
    """One statement of the verdict: ``kind`` is good, bad, leak or plain (colours and marks of the page)."""

    kind: str
    head: str
    text: str


def capital(text: str) -> str:
    """Return a text with its first letter large, unless it begins with a name of code such as ``label_gap``."""
    return text if "_" in text.partition(" ")[0] else text[:1].upper() + text[1:]
