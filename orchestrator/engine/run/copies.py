"""The warning of copies: points that are asked about and have a copy on the other side of a border of the split."""

from __future__ import annotations

from audits.data.duplicates import Copies, copies
from orchestrator.engine.kind import Design


def copy_warnings(design: Design, *, named: bool = True) -> list[str]:
    """Return lines about copies across the borders of ``design``; none where there are none or nobody can tell.

    ``named``: with the ids of a pair as an example.
    """
    borders = design.borders()
    told = None if borders is None else copies(design.data, borders)
    if told is None:
        return []
    found = [] if told.example is None else [crossing(told, told.example if named else None, design.data.name)]
    if told.near is None:
        found.append(
            f"near copies across borders of the split were not looked for: the {told.asked} points asked about are too "
            f"many to compare in each run; `orch data duplicates {design.data.name} FILE` compares all points once"
        )
    return found


def crossing(told: Copies, example: tuple[int, int] | None, name: str) -> str:
    """Return the line about the copies found in the data set ``name``, with an ``example`` where one may be named."""
    such = "" if example is None else f"; such as points {example[0]} and {example[1]}"
    count, near = told.exact + (told.near or 0), "" if told.near is None else f", {told.near} near"
    return (
        f"{count} of {told.asked} points asked about {'has' if count == 1 else 'have'} a copy on the other side of a "
        f"border of the split ({told.exact} exact{near}{such}): a never-seen "
        "point whose copy was trained on is a member in all but name, and counts as a false alarm where it is found; "
        f"`orch data duplicates {name} FILE` writes groups that keep copies together, for data.groups"
    )
