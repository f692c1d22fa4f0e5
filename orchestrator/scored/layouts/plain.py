"""A plain table: one row a point and target, columns named by options."""

from __future__ import annotations

from pathlib import Path

from audits.errors import BadInput, did_you_mean
from orchestrator.scored.columns import Part
from orchestrator.scored.options import Options
from orchestrator.scored.tabular import Tabular

MEMBER, SCORE = "member", "score"


def part_of(found: Tabular, path: Path, options: Options) -> Part:
    """Return the columns that the options name; without options, ``member`` and ``score``.

    Raises BadInput for columns that the file does not have, or that are none.
    """
    columns = found.names
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if list(columns).count(name) > 1)
        raise BadInput(f"{path} has several columns called {twice!r}; give each column a name of its own")
    if (not options.member and MEMBER not in columns) or (not options.scores and SCORE not in columns):
        raise BadInput(
            f"{path}: say which column is the truth and which are scores: --member COLUMN --score COLUMN; it has "
            f"{found.listing}{found.advice if MEMBER not in columns else ''}"
        )
    member, scores = options.member or MEMBER, options.scores or (SCORE,)
    optional = [("--group", options.group), ("--point", options.point)]
    named = [("--member", member), *(("--score", name) for name in scores), *(each for each in optional if each[1])]
    named += [("--decision", name) for name in options.decisions]
    for flag, name in named:
        if name not in columns:
            raise BadInput(
                f"{flag} {name!r}{did_you_mean(name, columns)}: {path} has no such column; it has {found.listing}"
            )
    return Part(
        found.pick(list(dict.fromkeys(name for _, name in named))),
        str(path),
        member,
        {name: name for name in scores},
        options.group,
        options.point,
        dict(zip(scores, options.decisions, strict=False)),
        options.higher_is_member,
    )
