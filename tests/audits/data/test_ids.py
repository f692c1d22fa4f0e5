"""Points as people write them: whole numbers and names, read the same by every way in, or refused by every one."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audits.data.id_lists import Listed, read_list
from audits.data.ids import Points
from audits.errors import BadInput
from tests.cases.families import as_one

NAMES = ["cat/1.png", "cat/2.png", "dog/1.png", "dog/3.png", "dog/é b.png"]
FOLDER = Points(5, lambda: NAMES, "/data/own/train")


@as_one("text, point", [
        ("0", 0), ("4", 4), ("4.0", 4), (" 4 ", 4), ("cat/2.png", 1), ("./cat/2.png", 1), ("cat\\2.png", 1),
        ("/data/own/train/cat/2.png", 1), ("train/cat/2.png", 1), ("own/train/cat/2.png", 1), ("3.png", 3),
        ("dog/../cat/2.png", 1), ("dog/e\u0301 b.png", 4), (" dog/3.png", 3),
    ])  # fmt: skip
def test_a_point_is_read_in_every_way_in_which_it_can_mean_no_other(text: str, point: int) -> None:
    assert FOLDER.ids([text], "list").tolist() == [point]


@as_one("text, named", [
        ("01", "'01'"), ("00", "'00'"), ("+1", "'+1'"), ("-1", "'-1'"), ("1e0", "'1e0'"), ("1.5", "'1.5'"),
        ("1_0", "'1_0'"), ("٣", "'٣'"), ("", "empty"), ("  ", "empty"), ("nan", "'nan'"), ("True", "'True'"),
        ("12345678901234567890", "outside"),
        ("5", "id 5"), ("1.png", "'cat/1.png' or 'dog/1.png'"), ("val/cat/2.png", "did you mean 'cat/2.png'"),
        ("/data/own/val/cat/2.png", "'cat/2.png'"), ("/cat/2.png", "no point"), ("cat/2", "did you mean 'cat/"),
        ("cat/9.png", "did you mean"), ("Cat/2.png", "did you mean 'cat/2.png'"),
    ])  # fmt: skip
def test_what_may_mean_another_point_or_none_is_refused(text: str, named: str) -> None:
    with pytest.raises(BadInput) as refused:
        FOLDER.ids(["2", text], "list")
    assert named in str(refused.value) and "\n" not in str(refused.value)


def test_names_of_a_data_set_without_names_are_refused_as_such() -> None:
    with pytest.raises(BadInput, match="no names"):
        Points(9).ids(["1", "cat/1.png"], "list")


def test_names_are_not_read_for_whole_numbers() -> None:
    def read() -> None:
        raise AssertionError("read")

    assert Points(9, read).ids(["1", "7.0"], "list").tolist() == [1, 7]


def test_a_name_that_stands_for_two_points_is_refused_and_one_spelt_alike_is_not_taken_for_it() -> None:
    with pytest.raises(BadInput, match="may be"):
        Points(2, lambda: ["a.png", "a.png"]).ids(["a.png"], "list")
    assert Points(2, lambda: ["a.png", " a.png"]).ids([" a.png", "a.png"], "list").tolist() == [1, 0]
    with pytest.raises(BadInput, match="may be"):
        Points(2, lambda: [" a.png", "a.png "]).ids(["a.png"], "list")


TEXTS = st.one_of(
    st.integers(0, 12).map(str),
    st.sampled_from([*NAMES, "01", "1.0", "7.00", "+1", "-0", "1e0", "1E2", "0x1", "", " ", "NA", "null", "1 ", "1,2"]),
    st.from_regex(r"[+-]?0{0,2}[0-9]{1,25}(\.[0-9]{0,2})?(e[+-]?[0-9])?", fullmatch=True),
    st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="#"), max_size=6),
)  # fmt: skip
"""What may stand in a list. Lines of a .txt file cannot say control characters, and # begins a comment there."""


def written_csv(separator: str, encoding: str) -> Callable[[Path, list[str]], None]:
    def write(file: Path, texts: list[str]) -> None:
        with file.open("w", encoding=encoding, newline="") as opened:
            csv.writer(opened, delimiter=separator, quoting=csv.QUOTE_ALL).writerows(
                [["id"], *([one] for one in texts)]
            )

    return write


WAYS: dict[str, Callable[[Path, list[str]], object]] = {
    "commas.csv": written_csv(",", "utf-8"),
    "utf16.csv": written_csv(",", "utf-16"),
    "tabs.tsv": written_csv("\t", "utf-8-sig"),
    "lines.txt": lambda file, texts: file.write_text("\n".join(texts), encoding="utf-8", newline="\n"),
    "array.npy": lambda file, texts: np.save(file, np.array(texts, dtype=str)),
    "list.json": lambda file, texts: file.write_text(json.dumps(texts), encoding="utf-8"),
    "text.parquet": lambda file, texts: pq.write_table(pa.table({"id": pa.array(texts, pa.string())}), file),
    "large.parquet": lambda file, texts: pq.write_table(pa.table({"id": pa.array(texts, pa.large_string())}), file),
    "view.parquet": lambda file, texts: pq.write_table(pa.table({"id": pa.array(texts, pa.string_view())}), file),
    "codes.parquet": lambda file, texts: pq.write_table(
        pa.table({"id": pa.array(texts, pa.string()).dictionary_encode()}), file
    ),
}


def outcome(file: Path, points: Points) -> str:
    """Return the ids of a list, or its refusal without the name of the file."""
    try:
        found = read_list(str(file), "list")
        assert isinstance(found, Listed)
        return str(points.ids(found.points, "list").tolist())
    except BadInput as error:
        return str(error)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXTS, min_size=1, max_size=5))
def test_every_way_in_gives_the_same_points_or_the_same_refusal(tmp_path: Path, texts: list[str]) -> None:
    found = {}
    for name, write in WAYS.items():
        if name == "lines.txt" and not all(text.strip() for text in texts):
            continue  # blank lines are skipped there
        write(tmp_path / name, texts)
        found[name] = outcome(tmp_path / name, FOLDER)
    assert len(set(found.values())) == 1, found
    ids = [int(one) for one in re.findall(r"\d+", found["text.parquet"])]
    if found["text.parquet"].startswith("["):
        assert len(ids) == len(set(ids)) == len(texts)
        assert all(str(point) == re.sub(r"\.0+$", "", text.strip(" \t")) or NAMES[point].endswith(text.strip())
                   for point, text in zip(ids, texts, strict=True) if text.isascii())  # fmt: skip


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ids=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9), min_size=1, max_size=5))
def test_columns_of_numbers_are_what_their_digits_are(tmp_path: Path, ids: list[int]) -> None:
    points, wanted = Points(10), tmp_path / "texts.parquet"
    pq.write_table(pa.table({"id": [str(one) for one in ids]}), wanted)
    np.save(tmp_path / "a.npy", np.array(ids, np.uint64))
    pq.write_table(pa.table({"id": pa.array(ids, pa.uint64())}), tmp_path / "a.parquet")
    (tmp_path / "a.json").write_text(json.dumps(ids))
    (tmp_path / "a.csv").write_text("\n".join(["id", *map(str, ids)]))
    found = [outcome(tmp_path / name, points) for name in ("a.npy", "a.parquet", "a.json", "a.csv")]
    assert set(found) == {outcome(wanted, points)}
    if all(one < 10 for one in ids):
        pq.write_table(pa.table({"id": pa.array(ids, pa.float64())}), tmp_path / "f.parquet")
        np.save(tmp_path / "f.npy", np.array(ids, np.float32))
        assert outcome(tmp_path / "f.parquet", points) == outcome(tmp_path / "f.npy", points) == found[0]


@as_one(
    "name, content, named",
    [
        ("list.txt", "über\n".encode("latin-1"), ("UTF-8", "0xfc", "iconv")),
        ("list.csv", "id\nüber\n".encode("latin-1"), ("UTF-8", "line 2", "iconv")),
        ("list.txt", "1\n2\n".encode("utf-16-le"), ("UTF-16", "iconv")),
        ("list.json", b'{"a": 1}', ("JSON list",)),
        ("list.json", b"[1, true]", ("'True'",)),
        ("list.json", b"[1, null]", ("'None'",)),
        ("list.json", b"[1", ("cannot be read",)),
        ("list.parquet", b"PAR1", ("cannot be read",)),
        ("list.csv", b"index\n1\n", ("'index'",)),
        ("list.csv", b"a,b\n1,2\n", ("a, b", "id")),
        ("list.csv", b"id;member\n1;1\n", ("semicolons",)),
    ],
)
def test_files_that_list_no_points_are_refused_in_one_line(
    tmp_path: Path, name: str, content: bytes, named: tuple[str, ...]
) -> None:
    (tmp_path / name).write_bytes(content)
    said = outcome(tmp_path / name, FOLDER)
    assert all(part in said for part in named) and "\n" not in said, said


def test_lists_in_utf_16_are_read_and_pipes_are_refused(tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("1\ndog/é b.png\n", encoding="utf-16")
    assert outcome(tmp_path / "list.txt", FOLDER) == "[1, 4]"
    assert "is not a file" in outcome(Path("/dev/null"), FOLDER)
