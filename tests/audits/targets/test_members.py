"""The points that a given model was trained on: rules and files, each checked against the data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from audits.errors import BadInput
from audits.targets.members import read_members


@pytest.mark.parametrize(
    ("rule", "ids"),
    [("all", range(9)), ("even", range(0, 9, 2)), ("odd", range(1, 9, 2)), ("2:5", range(2, 5)), (":3", range(3)),
     ("6:", range(6, 9))],
)  # fmt: skip
def test_rules_name_points(rule: str, ids: range) -> None:
    assert read_members(rule, 9).tolist() == list(ids)


def test_files_name_points_sorted(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("# of the run of May\n7\n\n3 # the odd one\n5\n")
    (tmp_path / "ids.csv").write_text("name,id\na,7\nb,3\nc,5\n")
    (tmp_path / "plain.csv").write_text("7\n3\n5\n")
    np.save(tmp_path / "ids.npy", np.array([7, 3, 5], np.int32))
    np.save(tmp_path / "mask.npy", np.isin(np.arange(9), [3, 5, 7]))
    for name in ("ids.txt", "ids.csv", "plain.csv", "ids.npy", "mask.npy"):
        found = read_members(str(tmp_path / name), 9)
        assert found.dtype == np.int64 and found.tolist() == [3, 5, 7], name


WRONG = {
    "ids.txt": [
        ("1\n9\n12\n", r"has id 9 \(2 of 3 ids are outside\), but the data set has 9 points; allowed: 0 to 8"),
        ("1\n2\n1\n", r"has id 1 twice \(1 such ids\)"),
        ("1\nx\n", "line 2 is 'x'; allowed: the id of a point"),
        ("1\n-2\n", "line 2 is '-2'"),
        ("3\n", "names 1 points; give 2 or more"),
        ("", "names 0 points"),
    ],
    "ids.csv": [
        ("name,point\na,1\n", "has the columns name, point; needed: id"),
        ("id\n1\n\n2.5\n", "line 4 is '2.5'"),
    ],
}


@pytest.mark.parametrize(("name", "text", "said"), [(name, *each) for name, all_ in WRONG.items() for each in all_])
def test_wrong_files_are_refused_in_one_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BadInput, match=said) as refused:
        read_members(str(tmp_path / name), 9)
    assert "\n" not in str(refused.value) and str(refused.value).startswith("target.members")
    assert str(refused.value).count("target.members") == 1


def test_what_is_neither_rule_nor_file_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "floats.npy", np.zeros(3))
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
        (str(tmp_path / "floats.npy"), r"an array of float64 of shape \(3,\)"),
        (str(tmp_path / "objects.npy"), "cannot be read: Object arrays"),
        (str(tmp_path / "huge.npy"), "has id 9223372036854775807"),
        (str(tmp_path / "archive.npy"), "cannot be read: the magic string is not correct"),
        (str(tmp_path / "nothing.npy"), "cannot be read: EOF"),
    ):
        with pytest.raises(BadInput, match=said):
            read_members(members, 9)
