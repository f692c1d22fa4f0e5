"""The warning of copies: points that are asked about and have a copy on the other side of a border of the split."""

from __future__ import annotations

from audits.data.duplicates import copies
from orchestrator.engine.kind import Design


def copy_warnings(design: Design) -> list[str]:
    """Return one line about copies across the borders of ``design``; none where there are none or nobody can tell."""
    found = design.borders()
    told = None if found is None else copies(design.data, found)
    if told is None or told.example is None:
        return []
    count, (one, two) = told.exact + told.near, told.example
    return [
        f"{count} of {told.asked} points asked about {'has' if count == 1 else 'have'} a copy on the other side of a "
        f"border of the split ({told.exact} exact, {told.near} near; such as points {one} and {two}): a never-seen "
        "point whose copy was trained on is a member in all but name, and counts as a false alarm where it is found; "
        f"`orch data duplicates {design.data.name} FILE` writes groups that keep copies together, for data.groups"
    ]
