"""The catalogue as a list: what each data set is, where it is looked for, and whether it is there."""

from __future__ import annotations

from dataclasses import dataclass

from audits.data.catalogue import CATALOGUE, describe


@dataclass(frozen=True)
class DataSet:
    """One line of the catalogue. ``state``: present, missing, or named (the name itself says where the data are)."""

    name: str
    description: str
    state: str
    points: int
    shape: tuple[int, ...]
    where: tuple[str, ...]
    how_to_get: str


def data_sets(root: str | None = None) -> list[DataSet]:
    """Return every source of the catalogue, described without reading the data; ``root`` is looked into first."""
    entries = []
    for name in CATALOGUE:
        source = CATALOGUE[name]
        if source.takes_place:
            entries.append(DataSet(source.form, source.description, "named", 0, (), (), ""))
            continue
        facts = describe(name, root)
        state = "present" if facts.present else "missing"
        entries.append(
            DataSet(name, source.description, state, facts.points, facts.shape, tuple(facts.where), facts.how_to_get)
        )
    return entries
