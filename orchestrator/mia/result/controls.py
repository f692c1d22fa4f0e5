"""The controls of a membership run: promised rates are kept, and canaries are found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from audits.statistics.controls import corrected, off
from orchestrator.judgement.controls import ControlName
from orchestrator.mia.result.rows import CanaryRow, MiaRow
from orchestrator.report.chance import decided

CANARIES = ControlName("canaries", "planted points with a wrong label")
BLIND = ControlName("members without the model")
Place = tuple[str, str]
"""Setting and attack."""


def judged(rows: Sequence[MiaRow], level: float, unlike: Collection[str] = ()) -> tuple[MiaRow, ...]:
    """Return ``rows`` with whether they are above chance, which promises are broken, corrected over all cells of the
    run, and what is void.

    Rates on null models and on targets' non-members are corrected by themselves. An attack that breaks a promise at one
    rate of a setting is void at all. ``unlike``: settings whose shadows have another recipe or architecture than their
    targets: no promise is to be expected there, so that an interval above it is enough. Rows that were off stay so.
    """
    own, null = (
        corrected([row.found_fpr_p for row in rows]),
        corrected([row.null_fpr_p for row in rows]),
    )
    found = [
        replace(
            row,
            found_fpr_p_holm=p_holm,
            found_fpr_off=row.found_fpr_off
            or off(p_holm, level)
            or (row.setting in unlike and row.found_fpr.above(row.promised_fpr)),
            null_fpr_p_holm=null_holm,
            null_fpr_off=row.null_fpr_off
            or off(null_holm, level)
            or (row.setting in unlike and row.null_fpr.above(row.promised_fpr)),
        )
        for row, p_holm, null_holm in zip(decided(rows, level), own, null, strict=True)
    ]
    void = {place(row) for row in found if row.found_fpr_off or row.null_fpr_off}
    return tuple(replace(row, void=place(row) in void) for row in found)


def place(row: MiaRow) -> Place:
    """Return the cell of a row."""
    return row.setting, row.attack


def void_cells(rows: Sequence[MiaRow]) -> frozenset[Place]:
    """Return the cells whose numbers rest on a broken promise."""
    return frozenset(place(row) for row in rows if row.void)


def control_warnings(rows: Sequence[MiaRow]) -> list[str]:
    """Return a warning for each cell with a broken promise: the rate that is furthest off, and what is void."""
    found: dict[Place, list[tuple[float, float, str]]] = {}
    for row in rows:
        for is_off, rate, who in (
            (row.found_fpr_off, row.found_fpr.value, "points that targets did not train on"),
            (row.null_fpr_off, row.null_fpr.value, "points by null models, which saw none of them,"),
        ):
            if is_off and rate is not None:
                found.setdefault(place(row), []).append((rate, row.promised_fpr, who))
    lines = []
    for (setting, attack), broken in found.items():
        rate, promised, who = max(broken, key=lambda each: each[0] - each[1])
        lines.append(
            f"control failed: {attack} (setting {setting}) calls {rate:.1%} of the {who} members at a promised "
            f"{promised:.1%}, also after Holm's correction; its TPR, p- and q-values are void"
        )
    return lines


def powerless(rows: Sequence[CanaryRow]) -> list[CanaryRow]:
    """Return the rows whose attack does not find canaries beyond chance."""
    return [row for row in rows if not row.auc.above(0.5)]
