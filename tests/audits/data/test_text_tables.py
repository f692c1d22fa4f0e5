"""Tables of text: every cell stays what was written, in every encoding that says what it is."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audits.data.text_tables import text_of, text_table
from audits.errors import BadInput
from tests.cases.families import as_one

LIKE_NUMBERS = st.from_regex(r"[+-]?0{0,3}[0-9]{1,25}(\.[0-9]{0,3})?(e[+-]?[0-9]{1,3})?", fullmatch=True)
CELLS = LIKE_NUMBERS | st.sampled_from(["", " ", "NA", "nan", "null", "None", "true", "1 ", " 1"]) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12
)  # fmt: skip


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=st.lists(st.tuples(CELLS, CELLS), max_size=8),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
    separator=st.sampled_from([",", "\t"]),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_every_cell_is_what_was_written(
    tmp_path: Path, rows: list[tuple[str, str]], encoding: str, separator: str, end: str
) -> None:
    text = io.StringIO(newline="")
    csv.writer(text, delimiter=separator, lineterminator=end, quoting=csv.QUOTE_ALL).writerows([("one", "two"), *rows])
    file = tmp_path / "table"
    file.write_bytes(text.getvalue().encode(encoding))
    table = text_table(file, "table", separator)
    assert list(zip(*table.to_pydict().values(), strict=True)) == rows


@as_one(
    "content, said",
    [
        ("ids,größe\n1,2\n".encode("latin-1"), ["UTF-8", "0xf6", "line 1", "iconv"]),
        ("id,name\n1,a\n2,Zoë\n".encode("cp1252"), ["UTF-8", "0xeb", "line 3", "iconv"]),
        ("id,name\n1,2\n".encode("utf-16-le"), ["UTF-16LE", "iconv"]),
        ("id,größe\n1,2\n".encode("utf-16-le"), ["iconv -f UTF-16LE"]),
        ("id,größe\n1,2\n".encode("utf-16-be"), ["iconv -f UTF-16BE"]),
        ("id,番号\n1,2\n".encode("utf-16-le"), ["iconv -f UTF-16LE"]),
        (b"\xff\xfei\0d\0\n", ["UTF-16", "line 1"]),
        (b"", ["empty"]),
        (b"\n\n", ["empty"]),
        (b"id;name\n1;2\n", ["semicolons", "commas"]),
        (b"id,id\n1,2\n", ["'id'"]),
        (b"id,name\n1\n", ["Expected 2 columns, got 1"]),
    ],
)
def test_what_is_no_such_table_is_refused(tmp_path: Path, content: bytes, said: list[str]) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(content)
    with pytest.raises(BadInput) as refused:
        text_table(file, "members.csv")
    assert str(refused.value).startswith("members.csv")
    assert "\n" not in str(refused.value)
    assert [each for each in said if each not in str(refused.value)] == []


def test_lines_before_the_heading_and_single_columns_do(tmp_path: Path) -> None:
    file = tmp_path / "table.csv"
    file.write_bytes(b"\r\n\n id \r\n007\n\n7\n")
    assert text_table(file, "").to_pydict() == {"id": ["007", "7"]}
    assert text_of(file, "").splitlines()[-1] == "7"


@pytest.mark.parametrize("text", ['"id\n' + "1\n" * 100_000, "id," + "x" * 200_000 + "\n1,2\n"])
def test_a_heading_without_an_end_costs_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(BadInput, match="quotation mark") as caught:
        text_table(tmp_path / "t.csv", "t.csv")
    assert "\n" not in str(caught.value)
