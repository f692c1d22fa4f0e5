"""Output to a terminal or a pipe whose encoding lacks letters that we use, such as ASCII or Latin-1."""

from __future__ import annotations

import codecs
import io
from typing import IO

NAME = "orch.letters"
PLAIN = {
    "−": "-", "–": "-", "…": "...", "’": "'", "“": '"', "”": '"', "≥": ">=", "≤": "<=", "≠": "!=", "±": "+-",
    "×": "x", "·": ".", "→": "->", "←": "<-", "∞": "inf", "½": "1/2", "²": "^2", "√": "sqrt ", "‖": "|", "\xa0": " ",
    "α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "Δ": "Delta", "ε": "epsilon", "λ": "lambda", "μ": "mu",
    "π": "pi", "ρ": "rho", "σ": "sigma", "τ": "tau", "φ": "phi", "χ": "chi", "✓": "+", "✗": "x",
}  # fmt: skip
"""What is written in the place of a letter; of all others, a question mark."""


def in_plain_letters(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return what stands for a letter that an encoding lacks, and where to go on: a handler of ``codecs``.

    A byte of a file's name that is no text is written as it is.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letter = error.object[error.start]
    raw = "\udc80" <= letter <= "\udcff"
    return bytes([ord(letter) - 0xDC00]) if raw else PLAIN.get(letter, "?"), error.start + 1


codecs.register_error(NAME, in_plain_letters)


def write_what_can_be_written(stream: IO[str]) -> None:
    """Let no text that is written to ``stream`` raise an error, where it is a stream of Python's own."""
    if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
        stream.reconfigure(errors=NAME)
