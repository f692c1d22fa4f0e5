"""Texts as numbers: words, a vocabulary of the most frequent ones, and token ids of equal length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from audits.errors import BadInput

PADDING, UNKNOWN = 0, 1
FIRST = 2  # the id of the first word
MOST_WORDS = 2**24 - FIRST  # whole numbers up to 2**24 are exact in float32
WORD = re.compile(r"\w+(?:'\w+)*")
MARKUP = re.compile(r"<[^<>]*>")


def words_of(text: str) -> list[str]:
    """Return the words of ``text`` in order: lower case, without HTML tags and punctuation; "don't" is one word."""
    return WORD.findall(MARKUP.sub(" ", text).lower().replace("’", "'"))


@dataclass(frozen=True)
class Vocabulary:
    """Known words: ``words[i]`` has the id i + 2; 0 is padding and 1 every other word."""

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.words) <= MOST_WORDS:
            raise BadInput(f"vocabulary: it has {len(self.words)} words; allowed: 1 to {MOST_WORDS}")
        if len(set(self.words)) < len(self.words):
            twice = next(word for word, times in Counter(self.words).items() if times > 1)
            raise BadInput(f"vocabulary: {twice!r} is there twice; give each word once")

    @cached_property
    def ids(self) -> dict[str, int]:
        """Word → id."""
        return {word: number for number, word in enumerate(self.words, start=FIRST)}

    def encode(self, texts: Sequence[str], length: int) -> npt.NDArray[np.float32]:
        """Return the ids of each text's first ``length`` words, padded behind: (texts, ``length``) float32.

        Float, because a data set holds images or floats; the numbers are whole and exact, and models of text turn them
        into integers.
        """
        found = np.full((len(texts), length), PADDING, dtype=np.float32)
        for row, text in zip(found, texts, strict=True):
            ids = [self.ids.get(word, UNKNOWN) for word in words_of(text)[:length]]
            row[: len(ids)] = ids
        return found


def most_frequent(texts: Iterable[str], size: int) -> Vocabulary:
    """Return the ``size`` most frequent words of ``texts``, most frequent first and equally frequent ones by alphabet.

    BadInput when the texts have no words at all.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(words_of(text))
    return Vocabulary(tuple(sorted(counts, key=lambda word: (-counts[word], word))[:size]))


def vocabulary_from(file: Path) -> Vocabulary:
    """Return the words in ``file``, one a line (UTF-8); empty lines do not count. BadInput when it cannot be read."""
    return Vocabulary(tuple(line.strip() for line in text_of(file).splitlines() if line.strip()))


def text_of(file: Path) -> str:
    """Return the text in ``file``; BadInput when it is not there or not UTF-8."""
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}; give the path of a text file") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
