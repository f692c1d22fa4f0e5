"""One sentence of a verdict."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sentence:
    """One statement of the verdict: ``kind`` is good, bad, leak or plain (colours and marks of the page)."""

    kind: str
    head: str
    text: str
