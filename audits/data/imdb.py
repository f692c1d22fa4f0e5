"""``imdb:PATH``: film reviews of two opinions in the authors' files, as token ids.

Maas et al., "Learning Word Vectors for Sentiment Analysis", ACL 2011: the folder aclImdb with train and test, in each
pos and neg with one text a review. Training reviews come first, then test reviews, in each part neg before pos, and by
name within.

The vocabulary is by default made of all reviews, so of the audited ones too: a word can be known because of a single
point. ``vocabulary=FILE`` takes a public one, and ``pieces=FILE`` the vocab.txt of a pre-trained, uncased BERT, whose
weights know texts as its pieces of words only. Token ids have no meaning between them, so what moves inputs (Apollo,
distances to the boundary, noise votes) does not apply; attacks on posteriors do.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from audits.data.dataset import Dataset, Description
from audits.data.source import CATALOGUE, Request, Source
from audits.data.text import MOST_WORDS, Vocabulary, WordPieces, most_frequent, pieces_from, text_of, vocabulary_from
from audits.errors import BadInput
from audits.home import expanded

LAYOUT = "aclImdb"
PARTS = ("train", "test")
CLASSES = ("neg", "pos")
LENGTH, WORDS = 256, 10_000
KNOWN = ("words", "vocabulary", "pieces")  # what says which tokens there are; one of them
LICENCE = "none stated (A. Maas and others; texts by the users of IMDb)"
HOW_TO_GET = (
    "unpack aclImdb_v1.tar.gz of https://ai.stanford.edu/~amaas/data/sentiment/ and give the folder that it makes"
)


def describe(request: Request) -> Description:
    """Say whether the reviews are there; they are counted, not read."""
    request.allow("length", *KNOWN)
    length = request.whole_number("length", LENGTH, least=1)
    places = [request.local_path(), request.local_path() / LAYOUT]
    found = next((place for place in places if all(folder.is_dir() for folder in folders(place))), None)
    points = 0 if found is None else len(reviews(found))
    where = [str(place) for place in (places if found is None else [found])]
    return Description(request.name, points, (length,), CLASSES, None, where, found is not None, LICENCE, HOW_TO_GET)


def load(request: Request) -> Dataset:
    """Read all reviews as their first ``length`` words or pieces: (N, length) float32 ids of ``audits.data.text``."""
    description = describe(request)
    if not description.present:
        raise description.missing()
    size = request.whole_number("words", WORDS, least=1)
    if size > MOST_WORDS:
        raise BadInput(f"data set {request.name!r}: words is {size}; allowed: at most {MOST_WORDS}")
    given = [option for option in KNOWN if option in request.options]
    if len(given) > 1:
        raise BadInput(f"data set {request.name!r}: {given[0]} and {given[1]} are both given; give one")
    listed = reviews(Path(description.where[0]))
    texts = [text_of(file) for file, _ in listed]
    vocabulary: Vocabulary | WordPieces
    if given in (["vocabulary"], ["pieces"]):
        path = expanded(request.options[given[0]])
        read = vocabulary_from if given == ["vocabulary"] else pieces_from
        vocabulary = read(path if request.root is None else request.root / path)
    else:
        vocabulary = most_frequent(texts, size)
    labels = np.array([label for _, label in listed], dtype=np.int64)
    return Dataset(request.name, vocabulary.encode(texts, description.shape[0]), labels, CLASSES, None)


def folders(root: Path) -> list[Path]:
    """Return the four folders that hold reviews, training part first."""
    return [root / part / name for part in PARTS for name in CLASSES]


def reviews(root: Path) -> list[tuple[Path, int]]:
    """Return file and label of every review below ``root``; BadInput when one of the folders holds none."""
    found: list[tuple[Path, int]] = []
    for folder in folders(root):
        files = sorted(folder.glob("*.txt"))
        if not files:
            raise BadInput(f"{folder} holds no reviews (*.txt); {HOW_TO_GET}")
        found += [(file, CLASSES.index(folder.name)) for file in files]
    return found


CATALOGUE.register("imdb")(
    Source(
        "imdb:PATH?length=N&words=N&vocabulary=FILE&pieces=FILE",
        "film reviews of two opinions, as token ids (aclImdb)", describe, load,
    )
)  # fmt: skip
