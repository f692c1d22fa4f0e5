"""From the columns of a table to what each attack said: checked once, with one line for what cannot be judged."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from audits.arrays import Bools, Floats
from audits.errors import BadInput
from audits.statistics.judged import Judged, rows_by
from orchestrator.scored.columns import Part, membership, numbers
from orchestrator.scored.names import Names, encoded, is_whole, names

SETTING = "base"
ONLY = "0"
"""The target of a table that names none."""


@dataclass(frozen=True)
class Attack:
    """What an attack said, with the names of its targets and points; ``left_out``: rows without a number.

    ``held_out``: decisions of ``judged`` whose thresholds were set here, by other points, and not by the attack.
    """

    judged: Judged
    targets: Names = field(repr=False)
    points: Names | None = field(default=None, repr=False)
    left_out: int = 0
    held_out: frozenset[str] = frozenset()


def attacks_of(part: Part, drop_missing: bool) -> list[Attack]:
    """Return the attacks of a table; raises BadInput for rows that cannot be judged."""
    if not part.table.num_rows:
        raise BadInput(f"{part.file} has no rows: there is nothing to judge")
    member, absent = membership(part, part.member)
    refuse_missing(part, part.member, absent, drop_missing)
    scores = {attack: numbers(part, column) for attack, column in part.scores.items()}
    for attack, column in part.scores.items():
        refuse_missing(part, column, np.isnan(scores[attack]), drop_missing, scores[attack])
    targets, unnamed = names(part, part.group) if part.group else (only_one(len(member)), absent)
    refuse_missing(part, part.group, unnamed, drop_missing)
    points, nameless = names(part, part.point) if part.point else (None, absent)
    refuse_missing(part, part.point, nameless, drop_missing)
    calls = {attack: membership(part, column, "a decision") for attack, column in part.decisions.items()}
    for attack, (_, lacking) in calls.items():
        refuse_missing(part, part.decisions[attack], lacking, drop_missing)
    odd = absent | unnamed | nameless
    odd = np.logical_or.reduce([odd, *(np.isnan(each) for each in scores.values()), *(c[1] for c in calls.values())])
    kept = ~odd
    refuse_one_class(part, member[kept], targets, targets.codes[kept])
    if points is not None:
        refuse_twice(part, targets, points, np.flatnonzero(kept))
    sign = 1.0 if part.higher_is_member else -1.0
    return [
        Attack(
            Judged(
                setting=SETTING,
                attack=attack,
                scores=sign * values[kept],
                member=member[kept],
                target=targets.codes[kept],
                point=None if points is None else points.codes[kept],
                decisions={"": calls[attack][0][kept].astype(np.float64)} if attack in calls else {},
            ),
            targets,
            points,
            int(odd.sum()),
        )
        for attack, values in scores.items()
    ]


def only_one(rows: int) -> Names:
    """Return the names of a table that tells no targets apart."""
    return Names(np.zeros(rows, np.int64), pa.array([ONLY], pa.large_string()))


def refuse_missing(part: Part, column: str, lacking: Bools, drop_missing: bool, values: Floats | None = None) -> None:
    """Raise BadInput where values are missing, unless their rows are to be left out.

    Infinite scores are scores: the log-odds of a probability of 1, the surest of all.
    """
    if drop_missing or not lacking.any():
        return
    row = int(np.argmax(lacking))
    what = "are missing" if values is None else "are NaN or missing"
    raise BadInput(
        f"{part.file}: {int(lacking.sum())} of {lacking.size} values of column {column!r} {what}, first in row "
        f"{row + 1}; --drop-missing leaves such rows out"
    )


def refuse_one_class(part: Part, member: Bools, targets: Names, codes: np.ndarray) -> None:
    """Raise BadInput unless there are members and non-members, in each group."""
    if not member.size:
        raise BadInput(f"{part.file}: no row is left: there is nothing to judge")
    for rows in rows_by(codes):
        own = member[rows]
        if not own.all() and own.any():
            continue
        which = f"group {targets.word(int(codes[rows[0]]))!r}" if part.group else f"column {part.member!r}"
        said = "non-members" if own.all() else "members"
        raise BadInput(
            f"{part.file}: {which} has no {said} among {own.size} rows; an attack is judged by both: add some"
            + (", or leave the group out" if part.group else "")
        )


def refuse_twice(part: Part, targets: Names, points: Names, rows: np.ndarray) -> None:
    """Raise BadInput where a target was asked about a point twice; ``rows`` are those that count."""
    target, point = targets.codes[rows], points.codes[rows]
    order = np.lexsort((rows, point, target))
    same = (np.diff(target[order]) == 0) & (np.diff(point[order]) == 0)
    if not same.any():
        return
    place = int(np.argmax(same))
    first, second = rows[order[place]], rows[order[place + 1]]
    whose = f" of group {targets.word(int(targets.codes[first]))!r}" if part.group else ""
    advice = "give each point once" if part.group else "give each point once, or name the target with --group"
    raise BadInput(
        f"{part.file}: point {points.word(int(points.codes[first]))!r}{whose} stands in rows {first + 1} and "
        f"{second + 1} ({int(same.sum())} rows too many in all); {advice}"
    )


def joined(found: Sequence[Sequence[Attack]], files: Sequence[str]) -> list[Attack]:
    """Return the attacks of several files: those of one name are asked of a target a file, unless these name theirs.

    Settings stay apart.
    """
    by_place: dict[tuple[str, str], list[tuple[str, Attack]]] = {}
    for file, attacks in zip(files, found, strict=True):
        for attack in attacks:
            by_place.setdefault(attack.judged.place, []).append((file, attack))
    return [each[0][1] if len(each) == 1 else together(each) for each in by_place.values()]


def together(parts: Sequence[tuple[str, Attack]]) -> Attack:
    """Return one attack on the targets of several files, each named by its file, and by its group.

    The only target of a file that is called by a whole number, or not at all, is called by the file. Where two names
    would be one, all are quoted. Targets of a file that hang together still do. The order of the files does not count.
    """
    parts = sorted(parts, key=lambda each: each[0])
    words: list[str] = []
    quoted: list[str] = []
    targets, points, units = [], [], []
    for file, attack in parts:
        distinct, codes = np.unique(attack.judged.target, return_inverse=True)
        targets.append(len(words) + codes)
        units.append(len(words) + np.unique(attack.judged.unit, return_inverse=True)[1])
        own = [attack.targets.word(int(code)) for code in distinct]
        words += [file if len(own) == 1 and is_whole(own[0]) else f"{file}/{name}" for name in own]
        quoted += [f"{json.dumps(file)}/{json.dumps(name)}" for name in own]
        if attack.points is not None and attack.judged.point is not None:
            points.append(attack.points.written(attack.judged.point))
    if len(set(words)) < len(words):
        words = quoted
    first = parts[0][1].judged
    whole = [attack.judged for _, attack in parts]
    shared = set.intersection(*(set(each.decisions) for each in whole))
    named = encoded(pa.concat_arrays(points)) if len(points) == len(parts) else None
    judged = Judged(
        setting=first.setting,
        attack=first.attack,
        scores=np.concatenate([each.scores for each in whole]),
        member=np.concatenate([each.member for each in whole]),
        target=np.concatenate(targets),
        point=None if named is None else named.codes,
        decisions={
            name: np.concatenate([each.decisions[name] for each in whole]) for name in first.decisions if name in shared
        },
        cluster=None if all(each.cluster is None for each in whole) else np.concatenate(units),
    )
    return Attack(
        judged,
        Names(judged.target, pa.array(words, pa.large_string())),
        named,
        sum(attack.left_out for _, attack in parts),
    )
