"""Numbers of a result for trackers and sweeps: one flat name each, as the rows that they stand in declare."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

from orchestrator.report.rows import read_rows, write_row

R = TypeVar("R")


@dataclass(frozen=True)
class Logged:
    """Fields of a row that are metrics (``headline.auc``: of a row within it), and how they are called.

    ``name``: fields of the row in braces, and ``{metric}`` for the field itself.
    """

    name: str
    fields: tuple[str, ...]


class LoggedRow(Protocol):
    """A row that declares its metrics."""

    LOGGED: ClassVar[tuple[Logged, ...]]


def flat(rows: Iterable[LoggedRow], logged: tuple[Logged, ...] | None = None) -> dict[str, float]:
    """Return name → number of the metrics of ``rows``, of another declaration than their own where one is given.

    What is not defined is left out; rows that share a name are averaged.
    """
    found: dict[str, list[float]] = {}
    for row in rows:
        told = write_row(row)
        for each in row.LOGGED if logged is None else logged:
            for field in each.fields:
                if (value := number_at(told, field)) is not None:
                    found.setdefault(each.name.format(**told, metric=field), []).append(value)
    return {name: values[0] if len(values) == 1 else sum(values) / len(values) for name, values in found.items()}


def number_at(told: Mapping[str, Any], field: str) -> float | None:
    """Return the number of a field, ``headline.auc`` of a row within; None where it is not defined."""
    outer, _, inner = field.partition(".")
    value = told.get(outer)
    if inner:
        return None if value is None else number_at(value, inner)
    return None if value is None else float(value)


def rows_of(document: Mapping[str, Any], field: str, form: type[R], setting: str | None = None) -> tuple[R, ...]:
    """Return the rows of a list of result.json, those of a ``setting`` where one is given; none of a missing list."""
    rows = [row for row in document.get(field) or () if setting is None or row["setting"] == setting]
    return read_rows(form, rows, f"result.json: {field}")
