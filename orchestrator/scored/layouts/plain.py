"""A plain table: one row a point and target, columns named by options."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from audits.errors import BadInput
from orchestrator.scored.columns import Part
from orchestrator.scored.options import Options, known

MEMBER, SCORE = "member", "score"


def part_of(table: pa.Table, path: Path, options: Options) -> Part:
    """Return the columns that the options name; without options, ``member`` and ``score``."""
    columns, file = table.column_names, str(path)
    if len(set(columns)) < len(columns):
        twice = next(name for name in columns if columns.count(name) > 1)
        raise BadInput(f"{file} has several columns called {twice!r}; give each column a name of its own")
    if (not options.member and MEMBER not in columns) or (not options.scores and SCORE not in columns):
        raise BadInput(
            f"{file}: say which column is the truth and which are scores: --member COLUMN --score COLUMN; it has "
            f"{', '.join(columns[:12])}{', …' if len(columns) > 12 else ''}"
        )
    scores = [known(name, "--score", columns, file) for name in options.scores or (SCORE,)]
    decisions = [known(name, "--decision", columns, file) for name in options.decisions]
    return Part(
        table,
        file,
        known(options.member or MEMBER, "--member", columns, file),
        {name: name for name in scores},
        known(options.group, "--group", columns, file) if options.group else "",
        known(options.point, "--point", columns, file) if options.point else "",
        dict(zip(scores, decisions, strict=False)),
        options.higher_is_member,
    )
