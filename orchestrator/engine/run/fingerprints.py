"""Fingerprints of a result: its data, the points that were queried, and who the members are."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from audits.arrays import Bools
    from audits.data.dataset import Dataset
    from audits.statistics.judged import Judged
    from orchestrator.engine.kind import Kind

    Queried = tuple[str, NDArray[Any], NDArray[Any], Bools]
    """A setting, and row by row the target, the point and whether the point is a member of the target."""


@dataclass(frozen=True, kw_only=True)
class Fingerprints:
    """What two results must share for their points to be paired.

    ``data``: sha256 of the contents of the data set, whatever it is called and wherever it lies; None where it is not
    known (scores from elsewhere). ``points`` and ``members``: by setting, sha256 of the ids of the points that targets
    were queried about, and of each target's points with their membership; no entry where points have no ids.
    """

    data: str | None
    points: Mapping[str, str]
    members: Mapping[str, str]


def fingerprints_of(kind: Kind, scores: pa.Table, data: Dataset) -> Fingerprints:
    """Return the fingerprints of a finished run of ``kind``, from its scores table and the data it was laid out on."""
    asked = queried(kind.judged.read(scores)) if kind.judged else queried_in_groups(scores)
    return Fingerprints(data=data.contents, **questions(asked))


def queried(judged: Iterable[Judged]) -> Iterator[Queried]:
    """Yield what targets were queried about; nothing where points have no ids."""
    for each in judged:
        if each.point is not None:
            yield each.setting, each.target, each.point, each.member


def queried_in_groups(scores: pa.Table) -> Iterator[Queried]:
    """Yield what one target was queried about, of a table whose column ``group`` says ``members`` of members."""
    import numpy as np

    names = ("setting", "point_id", "group")
    if not {*names} <= {*scores.column_names}:
        return
    columns = {name: np.asarray(scores[name].to_numpy(zero_copy_only=False)) for name in names}
    for setting in dict.fromkeys(columns["setting"].tolist()):
        own = columns["setting"] == setting
        point = columns["point_id"][own]
        yield setting, np.zeros(point.size, np.int64), point, columns["group"][own] == "members"


def questions(asked: Iterable[Queried]) -> dict[str, dict[str, str]]:
    """Return ``points`` and ``members`` of ``Fingerprints``, whatever the order of rows and attacks.

    Names are compared as text: 1 and "1" are one name, "1" and "01" are two.
    """
    seen: dict[str, set[bytes]] = {}
    points: dict[str, set[str]] = {}
    members: dict[str, set[tuple[str, str, bool]]] = {}
    for setting, target, point, member in asked:
        # Attacks of one setting mostly judge the same rows.
        rows = b"".join(_content(each) for each in (target, point, member))
        known = seen.setdefault(setting, set())
        if (short := hashlib.sha256(rows).digest()) in known:
            continue
        known.add(short)
        names = [str(each) for each in point.tolist()]
        points.setdefault(setting, set()).update(names)
        own = zip(map(str, target.tolist()), names, member.tolist(), strict=True)
        members.setdefault(setting, set()).update(own)
    return {
        "points": {setting: _digest(found) for setting, found in points.items()},
        "members": {setting: _digest(found) for setting, found in members.items()},
    }


def _content(values: NDArray[Any]) -> bytes:
    """Return bytes that differ where values do."""
    return json.dumps(values.tolist(), default=str).encode() if values.dtype.hasobject else values.tobytes()


def _digest(rows: Iterable[Any]) -> str:
    """Return the sha256 (64 hex characters) of rows in sorted order."""
    return hashlib.sha256(json.dumps(sorted(rows), ensure_ascii=True).encode()).hexdigest()
