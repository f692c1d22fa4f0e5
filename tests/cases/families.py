"""Families of tests that differ in values alone: some members run by default, the others are marked long.

``family`` tells them by the numbers of their rows, ``thinned`` by their values; ``as_one`` makes one test of them all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import pytest


def family(
    names: str,
    rows: Iterable[Any],
    default: Collection[int],
    ids: Callable[[Any], object] | None = None,
) -> pytest.MarkDecorator:
    """Run a test with every row of a table, as ``pytest.mark.parametrize`` does.

    The rows with the numbers ``default`` (from 0) run by default; the others, which take the same way through the code,
    are marked long. ``names``: of the arguments, with commas between them; a row has a value for each, or is the value
    of the only one.
    """
    single, rows = "," not in names, list(rows)
    assert {*default} < {*range(len(rows))}, "each member that runs by default is there, and others are not"

    def member(number: int, row: Any) -> Any:
        marks = () if number in default else pytest.mark.long
        return pytest.param(*((row,) if single else row), marks=marks)

    return pytest.mark.parametrize(names, [member(*each) for each in enumerate(rows)], ids=ids)


def firsts(tables: Iterable[Sequence[Any]], count: int = 1) -> set[int]:
    """Return the numbers of the first ``count`` rows of each table, where the tables stand one behind the other."""
    found, begin = set[int](), 0
    for table in tables:
        found |= {*range(begin, begin + min(count, len(table)))}
        begin += len(table)
    return found


def thinned(family: Iterable[Any], short: Collection[Any]) -> list[Any]:
    """Return the members of a family of arguments; those that are not in ``short`` are marked long.

    A tuple holds the values of several arguments.
    """
    listed = list(family)
    assert short and all(one in listed for one in short), "of others there are no tests"
    return [one if one in short else pytest.param(*values_of(one), marks=pytest.mark.long) for one in listed]


def values_of(member: Any) -> tuple[Any, ...]:
    """Return the values of all arguments."""
    return member if isinstance(member, tuple) else (member,)


def as_one(names: str, rows: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test with every row of a table, as ``pytest.mark.parametrize`` does, but as one test.

    For rows that take milliseconds, less than pytest takes to run and report one. All rows are run; a failure names
    those that failed. Stacked tables are combined; of a test's fixtures ``tmp_path`` is a folder of each row's own,
    all others are shared by the rows. ``names``: with commas between them.
    """
    fields, rows = [name.strip() for name in names.split(",")], list(rows)
    assert rows, "a table has rows"

    def joined(test: Callable[..., None]) -> Callable[..., None]:
        def every(**others: Any) -> None:
            failed = []
            for number, row in enumerate(rows):
                values = dict(zip(fields, row if len(fields) > 1 else (row,), strict=True))
                try:
                    test(**of_a_row(others, number), **values)
                except (Exception, pytest.fail.Exception) as error:
                    error.add_note(", ".join(f"{name} = {value!r:.200}" for name, value in values.items()))
                    failed.append(error)
            if failed:
                raise failed[0] if len(failed) == 1 else BaseExceptionGroup("rows that fail", failed)

        for name in ("__name__", "__qualname__", "__doc__", "__module__", "__dict__"):
            setattr(every, name, getattr(test, name))
        taken = inspect.signature(test)
        left = [parameter for name, parameter in taken.parameters.items() if name not in fields]
        assert len(left) == len(taken.parameters) - len(fields), "the test takes what the table gives"
        every.__signature__ = taken.replace(parameters=left)  # type: ignore[attr-defined]  # read by pytest
        every.tables = [*getattr(test, "tables", []), rows]  # type: ignore[attr-defined]  # for tests that share them
        return every

    return joined


def of_a_row(fixtures: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Return the fixtures of a row, with a new folder as ``tmp_path``."""
    if "tmp_path" not in fixtures:
        return dict(fixtures)
    folder = fixtures["tmp_path"] / f"row-{number}"
    folder.mkdir()
    return {**fixtures, "tmp_path": folder}
