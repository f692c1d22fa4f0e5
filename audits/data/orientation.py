"""Images that ask to be turned, which no reader does: a warning about sets too large to open every file."""

from __future__ import annotations

import numpy as np

from audits.data.image_files import Images, in_threads
from audits.data.images import is_turned, opened, turned_words
from audits.errors import BadInput

LOOKED_AT = 500
"""Images whose headers are read, at most: evenly over the set."""


def turned_notes(name: str, images: Images) -> tuple[str, ...]:
    """Return a note on images of the data set ``name`` with an EXIF orientation; none where no header has one.

    A damaged image says nothing here; it is named when it is asked for.
    """
    rows = np.unique(np.linspace(0, len(images) - 1, min(len(images), LOOKED_AT)).round().astype(int)).tolist()

    def turned(row: int) -> bool:
        try:
            with opened(*images.encoded(row)) as image:
                return is_turned(image)
        except BadInput:
            return False

    count = sum(in_threads(turned, rows))
    return (f"{name}: {turned_words(count, len(rows), len(images))}",) if count else ()
