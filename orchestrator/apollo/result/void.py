"""Numbers that are void where a promised false-positive rate is broken: TPR, p- and q-values, discoveries.

Thresholds and p-values of single points come from shadows. Where more never-seen points are called forgotten than
promised, targets do not behave as the shadows say, and nothing that rests on the promise may be quoted. What rests on
the judged points alone stands: AUC, its permutation p-value, and the TPR on the ROC. A rate below the promise is on the
careful side and voids nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from orchestrator.apollo.result.rows import ApolloResult, AttackRow, DiscoveryRow

FAR = 2.0
"""Times a promise from which no choice of shadows excuses it."""
Place = tuple[str, str, str]
"""Setting, unlearner, attack."""


def void_cells(rows: Iterable[AttackRow]) -> frozenset[Place]:
    """Return the cells whose promise is broken (``found_fpr_off``) at any of their rates.

    An attack that breaks it against ``retrain``, where every point is a never-seen one, is void against all methods of
    the setting.
    """
    rows = list(rows)
    off = [row for row in rows if row.found_fpr_off]
    everywhere = {(row.setting, row.attack) for row in off if row.control_of == "retrain"}
    cells = {place(row) for row in off}
    return frozenset(place(row) for row in rows if place(row) in cells or (row.setting, row.attack) in everywhere)


def place(row: AttackRow) -> Place:
    """Return the cell of a row."""
    return row.setting, row.unlearner, row.attack


def with_void(rows: Sequence[AttackRow]) -> tuple[AttackRow, ...]:
    """Return rows that know whether they are void."""
    void = void_cells(rows)
    return tuple(replace(row, void=place(row) in void) for row in rows)


def mostly_false(row: DiscoveryRow) -> bool:
    """Say whether a list of points holds far more false ones than it claims."""
    return row.fdp.low is not None and row.fdp.low > FAR * row.claimed_fdr


def marked(result: ApolloResult) -> ApolloResult:
    """Return a result in which discoveries, exposed points and budgets of void rows are void as well.

    So is a list of single points of a given model that holds more than twice as many false ones as it claims, by the
    interval over its points.
    """
    given = result.plan.get("target") is not None
    controls = {(row.setting, row.unlearner) for row in result.table if row.control_of}
    void = {place(row) for row in result.table if row.void}
    main, exposed = result.main_setting, result.exposed
    if exposed:
        points = tuple(
            replace(point, void=(exposed.setting, point.unlearner, exposed.attack) in void) for point in exposed.points
        )
        exposed = replace(exposed, points=points)
    return replace(
        result,
        discoveries=tuple(
            replace(
                row,
                void=(row.setting, row.unlearner, row.attack) in void
                or ((row.setting, row.unlearner) not in controls and given and mostly_false(row)),
            )
            for row in result.discoveries
        ),
        exposed=exposed,
        budget=tuple(replace(row, void=(main, row.unlearner, row.attack) in void) for row in result.budget),
    )
