"""The journal of a search, ``search.jsonl``: a line for whatever was asked and answered, from which it goes on.

Each line is one JSON object, flushed and synced before the search goes on. A last line that was cut off is dropped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from audits.errors import BadInput, how_many
from audits.plain_json import from_json
from audits.writing import opened_to_append
from orchestrator.engine.jobs.keys import differences

JOURNAL_FILE = "search.jsonl"
Line = Mapping[str, Any]

NO_LINE = "is not a line of a search"
ANOTHER = "choose another --out, or add --force to begin anew"


class Journal:
    """The lines of one search; ``head`` says which search it is, and is the first of them."""

    def __init__(self, file: Path, head: Line) -> None:
        self.file = file
        self.head = dict(head)

    def lines(self) -> list[Line]:
        """Return the lines of the search that the file holds, none if there is none; nothing is written.

        Raises BadInput for the journal of another search.
        """
        first, lines, _ = self._read()
        if different := self._differences(first):
            self._refuse(different[0])
        known = 0
        for number, line in enumerate(lines, start=2):
            begins = "changes" in line
            if line.get("trial") not in range(known + 1) or begins != (line["trial"] == known):
                raise BadInput(f"{self.file}, line {number}, {NO_LINE}; {ANOTHER}")
            known += begins
        return lines

    def check(self, samples: int) -> None:
        """Raise BadInput for the journal of another search, or of more trials than ``samples``; nothing is written."""
        begun = sum("changes" in line for line in self.lines())
        if begun > samples:
            raise BadInput(
                f"{self.file} has {how_many(begun, 'trial')}, and samples: {samples} would leave some out; "
                f"give {begun} or more, {ANOTHER}"
            )

    def begin(self, *, anew: bool = False) -> list[Line]:
        """Return ``lines`` and make the file ready for another one; begun if there is none, or ``anew`` in any case."""
        lines = [] if anew else self.lines()
        first, _, length = ({}, [], 0) if anew else self._read()
        if not first:
            self._write({"search": self.head}, anew=True)
        elif length < self.file.stat().st_size:  # a last line that was cut off
            with open(opened_to_append(self.file), "ab") as file:
                file.truncate(length)
        return lines

    def note(self, **line: Any) -> None:
        """Append a line; it is on the disk when this returns."""
        self._write(line)

    def _read(self) -> tuple[dict[str, Any], list[Line], int]:
        """Return the first line ({} if there is none), those after it, and where the last whole one ends."""
        found = list(self._lines())
        lines = [line for line, _ in found]
        return dict(lines[0]) if lines else {}, lines[1:], found[-1][1] if found else 0

    def _differences(self, first: Line) -> list[tuple[str, Any, Any]]:
        return differences(first.get("search", {}), self.head) if first else []

    def _refuse(self, difference: tuple[str, Any, Any]) -> NoReturn:
        field, old, new = difference
        there, here = worded(old), worded(new)
        raise BadInput(f"{self.file} is of another search ({field}: {there} there, {here} here); {ANOTHER}")

    def _write(self, line: Line, *, anew: bool = False) -> None:
        """Write a line whole or not at all, so that nothing is ever appended to a part of one; raises OSError."""
        with open(opened_to_append(self.file), "ab", buffering=0) as file:
            if anew:
                file.truncate(0)
            begin = file.seek(0, os.SEEK_END)
            try:
                left = memoryview(json.dumps(line).encode() + b"\n")
                while left:
                    left = left[file.write(left) or 0 :]
                os.fsync(file.fileno())
            except OSError:
                with suppress(OSError):
                    file.truncate(begin)
                raise

    def _lines(self) -> Iterator[tuple[Line, int]]:
        """Yield each whole line and where it ends; raises BadInput for one in the middle that is no JSON object."""
        try:
            data = self.file.read_bytes()
        except FileNotFoundError:
            return
        end = 0
        for number, text in enumerate(data.splitlines(keepends=True), start=1):
            end += len(text)
            try:
                line = from_json(text) if text.endswith(b"\n") else None
            except ValueError:
                line = None
            if isinstance(line, dict):
                yield line, end
            elif end < len(data):
                raise BadInput(f"{self.file}, line {number}, {NO_LINE}; {ANOTHER}")


def worded(value: Any) -> str:
    """Return a field of a search as a sweep file has it."""
    if isinstance(value, Mapping):  # the fields of asha, which is all that a scheduler can be
        return "asha"
    return "none" if value is None else str(value)
