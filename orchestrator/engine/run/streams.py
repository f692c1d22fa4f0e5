"""Output to what cannot take it: an encoding without our letters, closed streams, a terminal that is gone."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

PLAIN_LETTERS = "orch.letters"
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


codecs.register_error(PLAIN_LETTERS, in_plain_letters)


def write_what_can_be_written(stream: IO[str]) -> None:
    """Let no text that is written to ``stream`` raise an error, where it is a stream of Python's own."""
    if isinstance(stream, io.TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
        stream.reconfigure(errors=PLAIN_LETTERS)


def open_what_is_closed() -> None:
    """Let standard streams that were closed before the process began lead nowhere, as ``/dev/null`` does.

    Files opened later would have their numbers, and would take what is printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8", closefd=False))  # noqa: SIM115 - as long as the process


@contextmanager
def unless_gone() -> Iterator[None]:
    """Pass over the error of writing to a terminal that was closed: work goes on, unless SIGHUP ends it."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.EIO:
            raise
