"""Reviews become token ids: by the most frequent words or a given vocabulary, cut and padded to one length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audits.data.imdb import describe, load
from audits.data.source import CATALOGUE, parse
from audits.data.text import MOST_WORDS, Vocabulary, WordPieces, most_frequent, words_of
from audits.errors import BadInput
from tests.cases.families import as_one

REVIEWS = {
    "train/neg/1_2.txt": "A bad, bad film.<br /><br />Don't see it!",
    "train/neg/0_1.txt": "bad",
    "train/pos/0_9.txt": "A good film; SEE it",
    "test/neg/0_3.txt": "worse",
    "test/pos/0_8.txt": "Très good… a film",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_reviews(tmp_path)
    return tmp_path


def write_reviews(folder: Path) -> None:
    """Write the true layout below ``folder``."""
    for name, text in REVIEWS.items():
        place = folder / "aclImdb" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")


def write_odd_lists(folder: Path) -> None:
    """Write lists of words and of pieces, which are wrong but for ``pieces.txt``."""
    (folder / "twice.txt").write_text("a\na\n")
    (folder / "empty.txt").write_text("\n")
    (folder / "pieces.txt").write_text("\n".join(PIECES), "utf-8")
    (folder / "padless.txt").write_text("\n".join(PIECES[1:]), "utf-8")
    (folder / "latin.txt").write_bytes("tr\u00e8s".encode("latin-1"))


def test_words_are_lower_case_without_markup_and_punctuation():
    assert words_of("A bad, BAD film.<br /><br />Don’t <b>see</b> it! Très: 7/10") == [
        "a", "bad", "bad", "film", "don't", "see", "it", "très", "7", "10",
    ]  # fmt: skip
    assert words_of(" … ") == []


def test_the_most_frequent_words_come_first_and_ties_go_by_alphabet():
    texts = ["b a c", "c d", "c a"]
    assert most_frequent(texts, 10).words == ("c", "a", "b", "d")
    assert most_frequent(reversed(texts), 3).words == ("c", "a", "b")


def test_ids_are_cut_padded_and_whole():
    found = Vocabulary(("bad", "film")).encode(["film bad unheard film", "bad", ""], 3)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[3, 2, 1], [2, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize("inside", ["", "/aclImdb"])
def test_reviews_are_read_in_the_stated_order(folder: Path, inside: str):
    request = parse(f"imdb:{folder}{inside}?length=4")
    data = load(request)
    assert data.labels.tolist() == [0, 0, 1, 0, 1]
    assert data.classes == ("neg", "pos") and data.value_range is None
    known = most_frequent(REVIEWS.values(), 100)
    assert known.words[:3] == ("a", "bad", "film")
    order = ["train/neg/0_1.txt", "train/neg/1_2.txt", "train/pos/0_9.txt", "test/neg/0_3.txt", "test/pos/0_8.txt"]
    np.testing.assert_array_equal(data.inputs, known.encode([REVIEWS[name] for name in order], 4))
    facts = describe(request)
    assert (facts.points, facts.shape, facts.present) == (len(data), data.shape, True)
    assert load(request).fingerprint == data.fingerprint


def test_a_vocabulary_may_be_given_or_kept_small(folder: Path):
    (folder / "known.txt").write_text("film\n\ngood\n", "utf-8")
    given = load(parse("imdb:aclImdb?length=4&vocabulary=known.txt", folder))
    assert given.inputs[2].tolist() == [1, 3, 2, 1]
    small = load(parse("imdb:aclImdb?length=4&words=1", folder))
    assert small.inputs[2].tolist() == [2, 1, 1, 1]
    assert given.fingerprint != small.fingerprint


PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "bad", "film", "see", "##ing", "fil", "##m", "##s", "!"]
PIECES += [".", "don", "'", "t", "tres", "good", "中", "$", "7", "/", "10", "x", "##x"]


TEXTS: dict[str, list[int]] = {
    "A bad, BAD film. Seeing films!! Don't see it": [5, 6, 1, 6, 7, 14, 8, 9, 7, 12, 13, 13, 15, 16, 17, 8, 1],
    "Très good… a\tfilm\r\n 7/10 $7 €7 a€ x\u0301x": [18, 19, 1, 5, 7, 22, 23, 24, 21, 22, 1, 1, 25, 26],
    "中中film x\u200bx \u00a0a\u3000bad \ufffdgood a\x00bad": [20, 20, 7, 25, 26, 5, 6, 19, 1],
    "x" * 100 + " " + "x" * 101: [25, *99 * [26], 1],
    "fil films filming e\u0301": [10, 7, 12, 7, 9, 1],
    "": [],
}
"""Pieces of texts by BERT's own tokeniser."""
LENGTHS = (4, 9, 200)


@as_one("text", TEXTS)
def test_pieces_are_those_of_berts_own_tokeniser(text: str) -> None:
    for length in LENGTHS:
        wanted = [2, *TEXTS[text][: length - 2], 3]
        found = WordPieces(tuple(PIECES)).encode([text], length)
        assert found.dtype == np.float32
        assert found[0].tolist() == wanted + [0] * (length - len(wanted))


@pytest.mark.long  # importing it takes seconds
def test_the_tokeniser_still_gives_them() -> None:
    from transformers import BertTokenizer

    tokenizer = BertTokenizer(vocab={piece: number for number, piece in enumerate(PIECES)}, do_lower_case=True)
    for text in TEXTS:
        for length in LENGTHS:
            wanted = tokenizer(text, truncation=True, max_length=length, padding="max_length")["input_ids"]
            np.testing.assert_array_equal(WordPieces(tuple(PIECES)).encode([text], length)[0], wanted)


def test_pieces_leave_tags_out():
    pieces = WordPieces(tuple(PIECES))
    np.testing.assert_array_equal(pieces.encode(["bad<br /><br />film"], 5), pieces.encode(["bad film"], 5))
    np.testing.assert_array_equal(pieces.encode(["bad<br />film"], 5), [[2, 6, 7, 3, 0]])


def test_reviews_may_be_cut_into_pieces(folder: Path):
    (folder / "vocab.txt").write_text("\n".join(PIECES) + "\n", "utf-8")
    data = load(parse("imdb:aclImdb?length=6&pieces=vocab.txt", folder))
    assert data.inputs[2].tolist() == [2, 5, 19, 7, 1, 3]  # [CLS] a good film ; [SEP]
    assert data.inputs[0].tolist() == [2, 6, 3, 0, 0, 0]


def test_the_set_is_filed_under_its_name():
    assert CATALOGUE["imdb"].takes_place


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("imdb:nowhere", r"not found in .*nowhere, .*aclImdb; unpack aclImdb_v1"),
        ("imdb:aclImdb?size=3", "unknown option 'size'"),
        ("imdb:aclImdb?length=0", "length is '0'"),
        (f"imdb:aclImdb?words={MOST_WORDS + 1}", "allowed: at most"),
        ("imdb:aclImdb?words=3&vocabulary=a", "both given"),
        ("imdb:aclImdb?vocabulary=a&pieces=b", "vocabulary and pieces are both given"),
        ("imdb:aclImdb?pieces=twice.txt", r"pieces: \[UNK\] is lacking; give the vocab.txt of an uncased BERT"),
        ("imdb:aclImdb?pieces=padless.txt", r"pieces: the first is '\[UNK\]', not \[PAD\]"),
        ("imdb:aclImdb?pieces=pieces.txt&length=2", "length is 2; with pieces it must be 3 or more"),
        ("imdb:aclImdb?vocabulary=absent", "absent cannot be read"),
        ("imdb:aclImdb?vocabulary=twice.txt", "'a' is there twice"),
        ("imdb:aclImdb?vocabulary=empty.txt", "it has 0 words"),
        ("imdb:aclImdb?vocabulary=latin.txt", "is not UTF-8"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(folder: Path, name: str, says: str):
    write_odd_lists(folder)
    with pytest.raises(BadInput, match=says) as caught:
        load(parse(name, folder))
    assert "\n" not in str(caught.value)


def test_an_empty_part_is_refused(folder: Path):
    (folder / "aclImdb/test/pos/0_8.txt").unlink()
    with pytest.raises(BadInput, match=r"pos holds no reviews .*aclImdb_v1"):
        describe(parse("imdb:aclImdb", folder))
