"""Tables that are written as text: a cell stays the text that it is, since a guessed type merges names.

Twenty digits are no number, ``01`` and ``1`` are two names, and ``NA`` may be one. Whoever needs numbers reads them
from the text.
"""

from __future__ import annotations

import codecs
import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING

from audits.data.lfs_pointers import check_fetched
from audits.data.regular import content_of
from audits.errors import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons"}
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""How files of an encoding begin that says so."""


def text_of(path: Path, what: str) -> str:
    """Return the text of a file in UTF-8, or in UTF-16 or UTF-32 with a byte order mark.

    ``what``: how messages call it. Raises BadInput for another encoding, which is not guessed, and OSError.
    """
    content = content_of(path)
    check_fetched(content, what)
    encoding = next((name for mark, name in MARKS if content.startswith(mark)), "utf-8")
    first = content[: 2**16]
    if encoding.startswith("utf-8") and b"\0" in first:
        order = "BE" if first[::2].count(0) > first[1::2].count(0) else "LE"
        raise BadInput(
            f"{what} holds zero bytes, as UTF-16 without a byte order mark does, or a file that is no text; convert "
            f"it, for example: iconv -f UTF-16{order} -t UTF-8 OLD > NEW"
        )
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise BadInput(
            f"{what} is not {encoding.removesuffix('-sig').upper()}: byte 0x{content[error.start]:02x} in line {line}; "
            "is it Latin-1 or Windows-1252? convert it, for example: iconv -f WINDOWS-1252 -t UTF-8 OLD > NEW"
        ) from None


def text_table(path: Path, what: str, separator: str = ",") -> pa.Table:
    """Return a file with a heading as a table of strings, one column a heading; an empty cell is the empty text.

    Headings lose the spaces around them, cells keep theirs. Raises BadInput for another encoding or separator, headings
    that stand there twice, and rows of another number of cells; ``what``: how messages call the file.
    """
    import pyarrow as pa
    import pyarrow.csv as arrow

    text = text_of(path, what).lstrip("\r\n")
    head = heading(text, separator, what)
    if not head:
        raise BadInput(f"{what} is empty; the first line names the columns")
    if len(head) == 1:
        other = next((each for each in SEPARATORS if each != separator and each in head[0]), None)
        if other is not None:
            raise BadInput(
                f"{what}: its columns are separated by {SEPARATORS[other]}; separate them by {SEPARATORS[separator]}, "
                "and write numbers with a '.'"
            )
    twice = next((name for name in head if head.count(name) > 1), None)
    if twice is not None:
        raise BadInput(f"{what} has several columns called {twice!r}; give each column a name of its own")
    try:
        return arrow.read_csv(
            pa.py_buffer(text.encode()),
            read_options=arrow.ReadOptions(column_names=head, skip_rows_after_names=1),
            parse_options=arrow.ParseOptions(delimiter=separator, newlines_in_values=True),
            convert_options=arrow.ConvertOptions(column_types={name: pa.string() for name in head}),
        )
    except pa.ArrowException as error:
        said = next(iter(str(error).splitlines()), type(error).__name__)
        raise BadInput(f"{what} cannot be read as a table: {said[:160]}") from None


def heading(text: str, separator: str, what: str) -> list[str]:
    """Return the cells of the first line without the spaces around them; none of an empty text.

    Raises BadInput, which calls the text ``what``, for a cell that is longer than any name.
    """
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    try:
        return [name.strip() for name in next(rows, [])]
    except csv.Error as error:
        raise BadInput(f"{what} has no heading ({error}); is a quotation mark never closed?") from None
