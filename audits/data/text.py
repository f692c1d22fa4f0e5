"""Texts as numbers: words and a vocabulary of the most frequent ones, or BERT's pieces of words, as token ids."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from audits.data.lfs_pointers import check_fetched
from audits.data.regular import content_of
from audits.errors import BadInput

PADDING, UNKNOWN = 0, 1
FIRST = 2  # the id of the first word
MOST_WORDS = 2**24 - FIRST  # whole numbers up to 2**24 are exact in float32
WORD = re.compile(r"\w+(?:'\w+)*")
MARKUP = re.compile(r"<[^<>]*>")
PADDING_PIECE, UNKNOWN_PIECE, FIRST_PIECE, LAST_PIECE = "[PAD]", "[UNK]", "[CLS]", "[SEP]"
LONGEST_WORD = 100  # characters; BERT takes longer words for unknown
CHINESE = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f]"
)


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


@dataclass(frozen=True)
class WordPieces:
    """Pieces of words in the order of a BERT's vocab.txt: ``pieces[i]`` has the id i; [PAD] is the first.

    Texts are cut as by the lower-case tokeniser of Devlin et al. (arXiv 1810.04805): accents off, punctuation and
    Chinese characters apart, and of every word the longest known piece first, then the longest that goes on ("##").
    HTML tags are left out before, as in ``words_of``.
    """

    pieces: tuple[str, ...]

    def __post_init__(self) -> None:
        lacking = [piece for piece in (UNKNOWN_PIECE, FIRST_PIECE, LAST_PIECE) if piece not in self.pieces]
        if lacking or self.pieces[PADDING] != PADDING_PIECE:
            raise BadInput(
                f"pieces: {f'{lacking[0]} is lacking' if lacking else f'the first is {self.pieces[0]!r}, not [PAD]'}; "
                "give the vocab.txt of an uncased BERT"
            )

    @cached_property
    def ids(self) -> dict[str, int]:
        """Piece → id."""
        return {piece: number for number, piece in enumerate(self.pieces)}

    def encode(self, texts: Sequence[str], length: int) -> npt.NDArray[np.float32]:
        """Return [CLS], each text's first ``length`` − 2 pieces and [SEP], padded behind: (texts, ``length``) float32.

        BadInput when ``length`` has no room for a piece.
        """
        if length < 3:
            raise BadInput(f"length is {length}; with pieces it must be 3 or more, for [CLS], a piece and [SEP]")
        found = np.full((len(texts), length), PADDING, dtype=np.float32)
        known: dict[str, list[int]] = {}  # most words come again
        for row, text in zip(found, texts, strict=True):
            ids: list[int] = []
            for word in MARKUP.sub(" ", text).split():
                if len(ids) >= length - 2:
                    break
                if word not in known:
                    known[word] = [number for part in parts_of(word) for number in self.cut(part)]
                ids += known[word]
            whole = [self.ids[FIRST_PIECE], *ids[: length - 2], self.ids[LAST_PIECE]]
            row[: len(whole)] = whole
        return found

    def cut(self, word: str) -> list[int]:
        """Return the ids of the pieces of a lower-case word; that of [UNK] alone when it cannot be cut wholly."""
        found: list[int] = []
        low = 0
        while low < len(word) <= LONGEST_WORD:
            mark = "##" if low else ""
            high = next((end for end in range(len(word), low, -1) if mark + word[low:end] in self.ids), None)
            if high is None:
                break
            found.append(self.ids[mark + word[low:high]])
            low = high
        return found if low == len(word) else [self.ids[UNKNOWN_PIECE]]


def parts_of(word: str) -> list[str]:
    """Return what stood between spaces in lower case, without accents and control characters, punctuation apart."""
    kept = []
    for letter in unicodedata.normalize("NFD", word.lower()):
        kind = unicodedata.category(letter)
        apart = kind.startswith("P") or (letter.isascii() and kind.startswith("S")) or CHINESE.match(letter)
        if kind != "Mn" and not kind.startswith("C") and letter != "\ufffd":
            kept.append(f" {letter} " if apart else letter)
    return "".join(kept).split()


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


def pieces_from(file: Path) -> WordPieces:
    """Return the pieces in ``file``, a BERT's vocab.txt: one a line. BadInput when it cannot be read."""
    return WordPieces(tuple(text_of(file).removesuffix("\n").split("\n")))


def text_of(file: Path) -> str:
    """Return the text in ``file``; BadInput when it is not there or not UTF-8."""
    check_fetched(file, str(file))
    try:
        return content_of(file).decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise BadInput(f"{file} cannot be read: {error.strerror}; give the path of a text file") from None
    except UnicodeDecodeError as error:
        raise BadInput(f"{file} is not UTF-8 (byte {error.start}); save it as UTF-8") from None
