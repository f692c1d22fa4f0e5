"""The controls of a TMIA run, and what its cells are by them: promised rates are kept, and attacks would see a leak."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from audits.statistics.controls import corrected, off, rate_p
from audits.tmia.attacks import ATTACKS
from orchestrator.judgement.controls import OWN_MODELS, ControlName, agreeing, by_attack, fitted
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.rows import FAILED, FINDINGS, HELD, MISSING, RATES, Control, State
from orchestrator.judgement.wording import named
from orchestrator.report.numbers import percent
from orchestrator.report.result import of_setting
from orchestrator.tmia.plan import STARS
from orchestrator.tmia.result.given import compared, own_areas, unlike_fit
from orchestrator.tmia.result.given_rows import AlikeRow, GivenResult
from orchestrator.tmia.result.rows import TmiaCell, TmiaResult
from orchestrator.tmia.result.words import words

LOSSES = "tmia_posterior"
"""The attack whose statistic is minus the loss: confidences and losses are read off its scores."""
JUDGES = {
    "labels": ("tmia_distance", "tmia", "tmia_smoothed", "noise_votes", "label_gap"),
    "posteriors": (LOSSES, "pmia", "gmia1", "gmia2", "gmia3", "fmia", "yeom"),
}
"""The attack of the verdict at each access: the first that the plan has, whatever the attacks found."""
NULL_MODELS = ControlName("null models", "models that saw none of the candidates")
OVERFITTED = ControlName("over-fitted models", "models trained on the candidates alone")
NON_MEMBERS = ControlName("known non-members of the target")
ALIKE = ControlName("members are like non-members")
SEEN: Mapping[State, str] = {
    HELD: "As they should be, their members are recognised.",
    FAILED: "Their members are not recognised, so the audit would not see a leak.",
    MISSING: "It is unknown whether a leak would be found.",
}
UNLIKE_MODELS = "either target.members does not name its training points, or the recipe is not its own"


def judges_of(attacks: Collection[str]) -> list[str]:
    """Return the attacks of the verdict among ``attacks``, labels first: by name and never by what they found."""
    first = (next((name for name in names if name in attacks), None) for names in JUDGES.values())
    return [name for name in first if name]


def judges_in(result: TmiaResult, setting: str) -> list[str]:
    """Return the attacks of the verdict on a setting, by its plan, whether they have a result or not.

    Those that need the true class are none of the plan where y* is each model's own label.
    """
    mode = next(entry.mode for entry in result.settings if entry.setting == setting)
    asked = result.value(setting, "audit.attacks")
    if (result.value(setting, "audit.star") or STARS[mode]) != "true":
        asked = [name for name in asked if name not in ATTACKS or not ATTACKS[name].needs_true_label]
    return judges_of(asked)


def judged_cells(cells: Sequence[TmiaCell], level: float) -> tuple[TmiaCell, ...]:
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


def controls(result: TmiaResult) -> list[Control]:
    """Return the controls of each setting: promised rates, and that attacks see; of a given model those of ``given``.

    Rows about an attack alone stand in this order: the attacks of the verdict, then the others.
    """
    found = []
    for setting, cells in by_setting(result.table).items():
        own = [cell for cell in cells if cell.null_fpr_p is not None]
        found.append(rates(NULL_MODELS, setting, own, [cell for cell in own if cell.null_fpr_off], "null_fpr"))
        if isinstance(result, GivenResult):
            found += of_given(result, setting, cells)
        else:
            areas = {row.attack: row.auc for row in of_setting(result.overfitted, setting) if row.auc.bounded}
            found += seen(OVERFITTED, setting, areas, cells, judges_in(result, setting))
    return found


def by_setting(cells: Sequence[TmiaCell]) -> dict[str, list[TmiaCell]]:
    """Return the cells of each setting."""
    return {name: of_setting(cells, name) for name in dict.fromkeys(cell.setting for cell in cells)}


def rates(
    name: ControlName, setting: str, cells: Sequence[TmiaCell], off: Sequence[TmiaCell], rate: str, cause: str = ""
) -> Control:
    """Return whether points that no model of a group trained on are called members as rarely as promised.

    ``cells``: those that promise a rate there, ``off``: those that break it; ``cause``: why they may.
    """
    if not cells:
        return name.row(RATES, MISSING, setting, "It is unknown whether false alarms are as promised.")
    beta = percent(cells[0].beta)
    if not off:
        return name.row(RATES, HELD, setting, f"They are called members no more often than promised ({beta}).")
    worst: dict[str, float] = {}
    for cell in off:
        worst[cell.attack] = max(worst.get(cell.attack, 0.0), float(getattr(cell, rate)))
    by = named([f"{words(attack)} ({percent(most)})" for attack, most in worst.items()])
    why = (
        f"Called members more often than promised ({beta}) in {len(off)} of {len(cells)} cells, by {by}{cause}: "
        "precision and coverage are void there."
    )
    return name.row(RATES, FAILED, setting, why)


def seen(
    name: ControlName,
    setting: str,
    areas: Mapping[str, Estimate],
    cells: Sequence[TmiaCell],
    judges: Collection[str],
) -> list[Control]:
    """Return whether attacks find what they must, each for itself, those of the verdict first."""
    attacks = list(dict.fromkeys(cell.attack for cell in cells))
    return by_attack(name, setting, areas, attacks, judges, SEEN)


def of_given(result: GivenResult, setting: str, cells: Sequence[TmiaCell]) -> list[Control]:
    """Return the controls beside a given model.

    They are its known non-members; that attacks see members of models trained by the plan, that these fit as it does
    and learnt no more; and that its members are like others.
    """
    own = [cell for cell in cells if cell.fpr_p is not None]
    cause = "; reference models are not like the target, or it is surer than most models of its kind"
    found = [rates(NON_MEMBERS, setting, own, [cell for cell in own if cell.fpr_off], "fpr", cause)]
    theirs = own_areas(of_setting(result.own_models, setting))
    areas = {attack: area for attack, (_, area) in theirs.items()}
    judges = judges_in(result, setting)
    found += seen(OWN_MODELS, setting, areas, cells, judges)
    if compared(of_setting(result.fit, setting)):
        unlike = unlike_fit(result, setting)
        why = f"models of the plan's recipe fit otherwise than the target ({unlike}): {UNLIKE_MODELS}"
        found.append(fitted(setting, [why] if unlike else []))
    asked = [cell for cell in cells if cell.attack in theirs and cell.selection == theirs[cell.attack][0]]
    judge = max((name for name in judges if name in areas), key=lambda name: areas[name].ends[0], default=None)
    told = [(cell.attack, cell.auc.value, cell.auc.low, cell.auc.high) for cell in asked]
    seen_there = [(attack, area.value, area.low, area.high) for attack, area in areas.items()]
    found += agreeing(setting, judge, told, seen_there)
    return [*found, *(members_alike(row) for row in of_setting(result.alike, setting))]


def members_alike(row: AlikeRow) -> Control:
    """Return whether models that saw neither take members of the given model for non-members."""
    why = "Models that saw neither see no difference."
    if row.differ:
        why = (
            "Models that saw neither can tell them apart, so what is found may not be membership: give non-members "
            "that were set aside at random."
        )
    return ALIKE.row(FINDINGS, FAILED if row.differ else HELD, row.setting, why, evidence=row.auc)
