"""A check that two sides are about the same data, so that points of one id are one point."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

EMBEDDED = ("digits", "fashion14")
"""Data sets that come with the program or with a package, and are the same in every version."""
SHOWN = 12
"""Characters of a fingerprint that a reason shows."""


@dataclass(frozen=True)
class DataOf:
    """The data of a run: ``fingerprint`` of the contents, "" in results of versions that did not keep it.

    ``name``: as the plan names it, for words, and for results without fingerprints of data that cannot change;
    ``by_names``: of scores from elsewhere, whose points are known by their names alone.
    """

    run: str
    name: str
    fingerprint: str = ""
    by_names: bool = False


def data_of(run: str, plan: Mapping[str, Any], fingerprint: str | None, by_names: bool) -> DataOf:
    """Return the data of the run in the folder ``run``, of a plan as result.json has it."""
    if by_names:
        return DataOf(run, "", by_names=True)
    return DataOf(run, str(plan["data"].get("name")), fingerprint or "")


def same_data(one: DataOf, other: DataOf) -> tuple[bool, str]:
    """Say whether points of one id are one point, and if not, why: a clause.

    Contents decide, wherever they lie and whatever they are called. Without a fingerprint only data of ``EMBEDDED`` are
    known to be the same.
    """
    if one.run == other.run or (one.by_names and other.by_names):
        return True, ""
    if one.fingerprint and other.fingerprint:
        if one.fingerprint == other.fingerprint:
            return True, ""
        names = one.name if one.name == other.name else f"{one.name} and {other.name}"
        return False, (
            f"the contents of the data differ ({names}; fingerprints {one.fingerprint[:SHOWN]} and "
            f"{other.fingerprint[:SHOWN]}), so no point is shared"
        )
    if all(re.split("[:?]", each.name)[0] in EMBEDDED for each in (one, other)):
        same = one.name == other.name
        return same, "" if same else f"the data differ ({one.name} and {other.name}), so no point is shared"
    without = " and ".join(each.run for each in (one, other) if not each.fingerprint)
    return False, (
        f"{without} has no fingerprint of its data (an earlier version wrote it), so its points are not known to be "
        "those of the other; run it again to pair them"
    )
