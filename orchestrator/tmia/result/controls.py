"""The control of a TMIA run: models that saw no candidate are called members no more often than promised."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from audits.statistics.controls import corrected, off, rate_p
from orchestrator.judgement.controls import ControlName
from orchestrator.judgement.estimate import Estimate
from orchestrator.tmia.result.rows import OverfittedRow, TmiaCell

LOSSES = "tmia_posterior"
"""The attack whose statistic is minus the loss: confidences and losses are read off its scores."""
JUDGES = {
    "labels": ("tmia_distance", "tmia", "tmia_smoothed", "noise_votes", "label_gap"),
    "posteriors": (LOSSES, "pmia", "gmia1", "gmia2", "gmia3", "fmia", "yeom"),
}
"""The attack of the verdict at each access: the first that the run has, whatever the attacks found."""
NULL_MODELS = ControlName("null models", "models that saw none of the candidates")
OVERFITTED = ControlName("over-fitted models", "models trained on the candidates alone")
NON_MEMBERS = ControlName("known non-members of the target")
ALIKE = ControlName("members are like non-members")


def judges_of(attacks: Collection[str]) -> list[str]:
    """Return the attacks of the verdict among ``attacks``, labels first: by name and never by what they found."""
    first = (next((name for name in names if name in attacks), None) for names in JUDGES.values())
    return [name for name in first if name]


def sight(rows: Sequence[OverfittedRow], attacks: Collection[str]) -> tuple[str, Estimate] | None:
    """Return which of ``attacks`` finds members of over-fitted models most surely, and its AUC; highest low end first.

    None without a result: there were no such models, or an older version made the result.
    """
    own = [(row.attack, row.auc) for row in rows if row.attack in attacks and row.auc.bounded]
    return max(own, key=lambda each: each[1].ends[0], default=None)


def judged(cells: Sequence[TmiaCell], level: float) -> tuple[TmiaCell, ...]:
    """Return ``cells`` with p-values of the promised rate on null models and on targets, and which of them stay off.

    Each of the two is corrected by itself over all cells of the run that promise a rate and have an interval. What is
    void by them, and what lies above chance, is decided here.
    """
    null = [tested(cell, cell.null_fpr, cell.null_models, level) for cell in cells]
    own = [tested(cell, cell.fpr, cell.clusters, level) for cell in cells]
    columns = zip(cells, null, corrected(null), own, corrected(own), strict=True)
    found = (
        replace(
            cell,
            null_fpr_p=p,
            null_fpr_p_holm=p_holm,
            null_fpr_off=off(p_holm, level),
            fpr_p=fpr_p,
            fpr_p_holm=fpr_p_holm,
            fpr_off=off(fpr_p_holm, level),
        )
        for cell, p, p_holm, fpr_p, fpr_p_holm in columns
    )
    return tuple(replace(cell, void=cell.breaks, above_chance=not cell.breaks and precise(cell)) for cell in found)


def precise(cell: TmiaCell) -> bool:
    """Say whether the whole interval of a cell's precision lies above that of answering at random."""
    return cell.chance is not None and cell.precision.above(cell.chance)


def tested(cell: TmiaCell, rate: Estimate, models: int, level: float) -> float | None:
    """Return the p-value of a cell's promise for one of its rates, over ``models``; None where there is none to keep.

    The promise is β; the level truly tested by ranks (``attained``) may be lower, and a rate between the two is no
    broken promise.
    """
    if cell.promised is None or rate.value is None or rate.low is None or not models:
        return None
    return rate_p(rate.value, rate.low, cell.promised, level, max(1, models - 1))


def fair(cells: Sequence[TmiaCell]) -> list[TmiaCell]:
    """Return the cells that the control is judged by."""
    return [cell for cell in cells if cell.null_fpr_p is not None]


def control_warnings(cells: Sequence[TmiaCell]) -> list[str]:
    """Return a warning for each setting in which attacks call null models members more often than promised."""
    tests, lines = len(fair(cells)), []
    for setting in dict.fromkeys(cell.setting for cell in cells):
        own = [cell for cell in fair(cells) if cell.setting == setting]
        broken = [cell for cell in own if cell.null_fpr_off]
        if broken:
            lines.append(
                f"control failed: setting {setting}: null models are called members more often than "
                f"{broken[0].beta:.1%} in {len(broken)} of {len(own)} cells, also after Holm's correction over the "
                f"{tests} of the run ({', '.join(map(named, broken))}); precision and coverage are void there and must "
                "not be quoted"
            )
    return lines


def named(cell: TmiaCell) -> str:
    """Return a cell with its rate on null models and its p-value, for a message."""
    return f"{cell.attack} on {cell.selection} {cell.null_fpr.value:.1%}, p = {cell.null_fpr_p_holm:.2g}"
