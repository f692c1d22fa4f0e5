"""The points that a given model was trained on: rules and files, each checked against the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from audits.data.ids import Points
from audits.errors import BadInput
from audits.targets.members import read_members
from tests.cases.families import as_one


@as_one(
    "rule, ids",
    [
        *(("all", range(9)), ("even", range(0, 9, 2)), ("odd", range(1, 9, 2))),
        *(("2:5", range(2, 5)), (":3", range(3)), ("6:", range(6, 9))),
    ],
)
def test_rules_name_points(rule: str, ids: range) -> None:
    assert read_members(rule, 9).tolist() == list(ids)


def test_files_name_points_sorted(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("# of the run of May\n7\n\n3 # the odd one\n5\n")
    (tmp_path / "ids.csv").write_text("id\n7\n3\n5\n")
    (tmp_path / "plain.csv").write_text("7\n3\n5\n")
    np.save(tmp_path / "ids.npy", np.array([7, 3, 5], np.int32))
    np.save(tmp_path / "mask.npy", np.isin(np.arange(9), [3, 5, 7]))
    for name in ("ids.txt", "ids.csv", "plain.csv", "ids.npy", "mask.npy"):
        found = read_members(str(tmp_path / name), 9)
        assert found.dtype == np.int64 and found.tolist() == [3, 5, 7], name


WRONG = {
    "ids.txt": [
        ("1\n9\n12\n", r"has id 9 \(2 of 3 ids are outside\), but the data set has 9 points; allowed: 0 to 8"),
        ("1\n2\n1\n", r"has id 1 twice \(1 such id\)"),
        ("1\nx\n", "'x' in place 2 of 2; allowed: ids"),
        ("1\n-2\n", "'-2' in place 2"),
        ("3\n", "names 1 point; give 2 or more"),
        ("", "names 0 points"),
    ],
    "ids.csv": [
        ("name,point\na,1\n", "has the columns name, point; needed: id"),
        ("id\n1\n\n2.5\n", "'2.5' in place 2"),
    ],
}


@as_one("name, text, said", [(name, *each) for name, all_ in WRONG.items() for each in all_])
def test_wrong_files_are_refused_in_one_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=said) as refused:
        read_members(str(tmp_path / name), 9)
    assert "\n" not in str(refused.value) and str(refused.value).startswith("target.members")
    assert str(refused.value).count("target.members") == 1


def test_what_is_neither_rule_nor_file_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "matrix.npy", np.zeros((3, 2), np.int64))
    np.save(tmp_path / "mask.npy", np.zeros(8, bool))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    np.save(tmp_path / "huge.npy", np.array([1, 2**63 + 5], np.uint64))
    np.savez(tmp_path / "archive.npz", ids=np.arange(3))
    (tmp_path / "archive.npz").rename(tmp_path / "archive.npy")
    (tmp_path / "nothing.npy").write_bytes(b"")
    for members, said in (
        ("evens", "is 'evens'; allowed: all, even, odd, or START:STOP, or a file of ids"),
        ("5:3", "is 5:3, which names no point"),
        ("0:10", "within 0:9"),
        (str(tmp_path / "no.txt"), "cannot be read: No such file"),
        (str(tmp_path / "matrix.npy"), r"an array of int64 of shape \(3, 2\)"),
        (str(tmp_path / "mask.npy"), "an array of 8 bools; the data set has 9 points"),
        (str(tmp_path), "allowed: all, even, odd"),
        (str(tmp_path / "objects.npy"), "cannot be read: Object arrays"),
        (str(tmp_path / "huge.npy"), "has id 9223372036854775807"),
        (str(tmp_path / "archive.npy"), "cannot be read: the magic string is not correct"),
        (str(tmp_path / "nothing.npy"), "cannot be read: EOF"),
    ):
        with pytest.raises(BadInput, match=said):
            read_members(members, 9)


@as_one("head, yes, no", [
        ("id,member", "1", "0"), ("id,member", "1.0", "0.0"), ("id,member", "True", "False"),
        ("is_member,id", "yes", "No"), ("id,split", "train", "test"), ("id,split", "Train", "val"),
        ("id,membership", "member", "non-member"), ("id,membership", " in ", "out"),
    ])  # fmt: skip
@as_one("ending", ["csv", "parquet"])
def test_a_second_column_says_which_points_are_members(
    tmp_path: Path, head: str, yes: str, no: str, ending: str
) -> None:
    file, ids = tmp_path / f"list.{ending}", [7, 2, 5, 3, 8]
    columns = {name: ids if name == "id" else [yes, no, yes, no, no] for name in head.split(",")}
    if ending == "csv":
        rows = zip(*columns.values(), strict=True)
        file.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]))
    else:
        pq.write_table(pa.table(columns), file)
    assert read_members(str(file), 9).tolist() == [5, 7]
    assert read_members(str(file), 9, "target.forget").tolist() == [5, 7]
    assert read_members(str(file), 9, "target.non_members").tolist() == [2, 3, 8]


@pytest.mark.parametrize("values", [[True, False, True], [1, 0, 1], [1.0, 0.0, 1.0]])
def test_a_second_column_of_another_type_says_the_same(tmp_path: Path, values: list[object]) -> None:
    pq.write_table(pa.table({"id": [4, 0, 2], "member": values}), tmp_path / "list.parquet")
    assert read_members(str(tmp_path / "list.parquet"), 9).tolist() == [2, 4]


@as_one(
    "text, names",
    [
        ("id,label\n1,0\n2,1\n", ("'label'", "member", "split")),
        ("id,path\n1,a\n2,b\n", ("'path'",)),
        (",id\n0,4\n1,5\n", ("index=False",)),
        ("Unnamed: 0,id\n0,4\n1,5\n", ("'Unnamed: 0'", "index=False")),
        ("id,member\n1,maybe\n2,1\n", ("'maybe'", "1 of 2 rows")),
        ("id,member\n1,\n2,1\n", ("''", "1 of 2 rows")),
        ("id,member\n1,2\n2,1\n", ("'2'",)),
        ("id,member\n1,0\n2,1\n", ("1 of 2 points",)),
        ("id,member\n1,0\n1,1\n2,1\n", ("has id 1 twice",)),
        ("id,member\n1,1\n2,1\n9,0\n", ("has id 9", "outside")),
        ("id,member,split\n1,1,train\n2,1,train\n", ("member and split",)),
    ],
)
def test_second_columns_that_say_something_else_are_refused_by_name(
    tmp_path: Path, text: str, names: tuple[str, ...]
) -> None:
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(BadInput) as refused:
        read_members(str(tmp_path / "list.csv"), 9)
    assert all(name in str(refused.value) for name in names), str(refused.value)
    assert "\n" not in str(refused.value)


def test_names_of_files_are_members_as_their_ids_are(tmp_path: Path) -> None:
    points = Points(4, lambda: ["cat/1.png", "cat/2.png", "dog/1.png", "dog/3.png"], "/data/train")
    (tmp_path / "list.txt").write_text("dog/1.png\n3\ncat/2.png # the odd one\n")
    (tmp_path / "list.csv").write_text("id,split\n/data/train/dog/1.png,train\n./cat/2.png,train\n3.png,val\n3,val")
    assert read_members(str(tmp_path / "list.txt"), points).tolist() == [1, 2, 3]
    with pytest.raises(BadInput, match="has id 3 twice"):
        read_members(str(tmp_path / "list.csv"), points)


@pytest.mark.parametrize("numbers", [[0, 0, 1, 1], [0, 1, 1, 2], [1.0, 1.0, 0.0, 0.0]])
def test_numbers_of_a_split_say_nothing_since_0_is_train_in_some_lists_and_1_in_others(
    tmp_path: Path, numbers: list[float]
) -> None:
    lines = "".join(f"{point},{number}\n" for point, number in enumerate(numbers))
    (tmp_path / "ids.csv").write_text(f"id,split\n{lines}")
    pq.write_table(pa.table({"id": range(4), "split": numbers}), tmp_path / "ids.parquet")
    for name in ("ids.csv", "ids.parquet"):
        with pytest.raises(BadInput, match=r"'split' has '[01].*write train and test"):
            read_members(str(tmp_path / name), 9)


def test_a_comment_that_is_the_name_of_a_point_is_refused(tmp_path: Path) -> None:
    points = Points(4, lambda: ["#1/a.png", "#1/b.png", "c/a.png", "c/b.png"])
    (tmp_path / "ids.txt").write_text("c/a.png\n#1/a.png\n2 # a comment\n")
    with pytest.raises(BadInput, match=r"'#1/a.png', which .* the name of a point; write \./#1/a.png"):
        read_members(str(tmp_path / "ids.txt"), points)
    (tmp_path / "ids.txt").write_text("c/a.png\n./#1/a.png\n#c/b.png\n# a/b\n")
    assert read_members(str(tmp_path / "ids.txt"), points).tolist() == [0, 2]


@pytest.mark.parametrize("line", ["c/a.png #2.png", "#1.png", r"#1\b.png"])
def test_a_line_that_is_a_name_however_it_is_written_is_no_comment(tmp_path: Path, line: str) -> None:
    points = Points(4, lambda: ["#1/#1.png", "#1/b.png", "c/a.png", "c/a.png #2.png"])
    (tmp_path / "ids.txt").write_text(f"0\n2\n{line}\n")
    with pytest.raises(BadInput, match="is the name of a point"):
        read_members(str(tmp_path / "ids.txt"), points)


def test_a_list_whose_index_is_the_id_is_read_as_pandas_reads_it(tmp_path: Path) -> None:
    frame = pd.DataFrame({"id": range(8), "member": [1, 0] * 4})
    for rows in (frame, frame[::-1], frame.iloc[[3, 0, 2, 6]]):
        rows.set_index("id").to_parquet(tmp_path / "ids.parquet")
        expected = sorted(rows.id[rows.member == 1])
        assert read_members(str(tmp_path / "ids.parquet"), 9).tolist() == expected
    frame.iloc[::3].set_index("id")[[]].to_parquet(tmp_path / "none.parquet")
    assert read_members(str(tmp_path / "none.parquet"), 9).tolist() == [0, 3, 6]


def test_a_column_that_stands_twice_is_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table([[0, 1], [2, 3]], names=["id", "id"]), tmp_path / "ids.parquet")
    with pytest.raises(BadInput, match="several columns called 'id'"):
        read_members(str(tmp_path / "ids.parquet"), 9)
