"""Members of a family that are one test are all run, and those that fail are named."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from tests.cases.families import as_one


def test_every_row_of_every_table_is_run() -> None:
    seen = []

    @as_one("b", [1, 2])
    @as_one("a, c", [("x", (0,)), ("y", (1,))])
    def body(a: str, b: int, c: tuple[int, ...]) -> None:
        seen.append((a, b, c))

    assert not inspect.signature(body).parameters and body.__name__ == "body"
    body()
    assert seen == [("x", 1, (0,)), ("y", 1, (1,)), ("x", 2, (0,)), ("y", 2, (1,))]


def test_a_row_that_fails_is_named_and_the_others_are_run() -> None:
    seen = []

    @as_one("a", [1, 2, 3])
    def body(a: int) -> None:
        seen.append(a)
        assert a != 2

    with pytest.raises(AssertionError) as caught:
        body()
    assert caught.value.__notes__ == ["a = 2"] and seen == [1, 2, 3]


def test_several_rows_that_fail_are_named_together() -> None:
    @as_one("a", [1, 2, 3])
    def body(a: int) -> None:
        with pytest.raises(ZeroDivisionError):
            assert a / (a - 2)

    with pytest.raises(BaseExceptionGroup) as caught:
        body()
    assert [error.__notes__ for error in caught.value.exceptions] == [["a = 1"], ["a = 3"]]


def test_a_table_of_other_names_is_refused() -> None:
    with pytest.raises(AssertionError, match="what the table gives"):

        @as_one("b", [1])
        def body(a: int) -> None:
            assert a


def test_each_row_has_a_folder_of_its_own(tmp_path: Path) -> None:
    @as_one("b", ["x", "y"])
    @as_one("a", ["x", "y"])
    def body(a: str, tmp_path: Path, b: str) -> None:
        (tmp_path / "file").touch(exist_ok=False)

    assert [*inspect.signature(body).parameters] == ["tmp_path"]
    body(tmp_path=tmp_path)
    assert len([*tmp_path.glob("*/*/file")]) == 4
