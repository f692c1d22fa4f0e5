"""Rows about a given target: intervals of one model over points and shadows, and controls in place of canaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.statistics.one_target import SAYS, area_interval, one_target_rate, one_target_rate_p
from orchestrator.engine.given import POINTS
from orchestrator.engine.run.given import NOTES
from orchestrator.engine.run.models import METRICS
from orchestrator.engine.store.payloads import unpack_json
from orchestrator.judgement.estimate import Estimate
from orchestrator.mia.result.areas import Columns, rows_where, worth
from orchestrator.mia.result.rows import BlindRow, EpsilonRow, FitRow, MiaRow, OwnRow
from orchestrator.mia.stages.scoring import OWN, TARGET

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store
    from orchestrator.mia.plan import MiaPlan

Details = Sequence[Mapping[str, Any]]
UNLIKE = 0.1
"""Difference of accuracies from which models of the plan's recipe do not stand for the given one."""
POOR_FIT = 0.5
"""Accuracy on its own points below which a given model may be shown them otherwise than in its training."""


def of_one_model(
    rows: Sequence[MiaRow], columns: Columns, details: Mapping[str, Details], level: float
) -> list[MiaRow]:
    """Return rows with the intervals and p-values of a given target, those of settings with one."""
    found = []
    for row in rows:
        told = details[row.setting]
        if is_given(told):
            own = of_role(columns, row.setting, row.attack, TARGET)
            row = with_intervals(row, own, without(told, row.attack, 0), level, told[0]["known"][row.attack])
        found.append(row)
    return found


def is_given(details: Details) -> bool:
    """Say whether the details are of a plan with a target."""
    return bool(details) and "blind" in details[0]


def of_role(columns: Columns, setting: str, attack: str, role: str) -> dict[str, NDArray[Any]]:
    """Return the rows of the scores table of an attack about the models of one role."""
    chosen = (columns["setting"] == setting) & (columns["attack"] == attack) & (columns["role"] == role)
    return rows_where(columns, chosen)


def without(details: Details, attack: str, model: int) -> Mapping[str, Any]:
    """Return what an attack says about a judged model with each pair of shadows left out; of one without nothing."""
    rows = [row for row in details[0]["without"] if (row["attack"], row["model"]) == (attack, model)]
    return rows[0] if rows else {"auc": (), "calls": ()}


def rates_without(told: Mapping[str, Any], rate: float, side: str) -> Sequence[float]:
    """Return the shares called members on a ``side`` with each pair left out."""
    return next((call[side] for call in told["calls"] if call["fpr"] == rate), ())


def with_intervals(row: MiaRow, own: Columns, told: Mapping[str, Any], level: float, known: int) -> MiaRow:
    """Return a row with the intervals of one model: of its AUC, its rates, and what its calls are worth.

    ``known``: how many known non-members set the threshold.
    """
    member, rate = own["member"].astype(bool), row.promised_fpr
    calls = own[f"decision_{rate:g}"].astype(np.float64)
    sides = {side: rates_without(told, rate, side) for side in ("inside", "outside")}
    tpr = Estimate(*one_target_rate(calls[member], sides["inside"], level))
    fpr = Estimate(*one_target_rate(calls[~member], sides["outside"], level))
    above_p, below_p = (
        one_target_rate_p(calls[~member], rate, sides["outside"], level, below=below, known=known)
        for below in (False, True)
    )
    return replace(
        row,
        auc=Estimate(*area_interval(own["score"], member, told["auc"], level)),
        tpr=tpr,
        found_fpr=fpr,
        worth_1=worth(tpr, fpr, 0.01),
        worth_10=worth(tpr, fpr, 0.1),
        found_fpr_p=above_p,
        found_fpr_below_p=below_p,
    )


def own_rows(setting: str, columns: Columns, details: Details, plan: MiaPlan) -> list[OwnRow]:
    """Return how attacks judge the twins of the plan's own recipe beside a given target; nothing without one.

    AUC: the mean of the two, its ends the means of theirs, as if the errors of twins were one and the same. Each point
    is outside of one of them, so that rates count every point of the pool once.
    """
    rows: list[OwnRow] = []
    if not is_given(details):
        return rows
    level, rate = plan.audit.level, plan.audit.fpr[0]
    for attack in dict.fromkeys(columns["attack"][(columns["setting"] == setting) & (columns["role"] == OWN)]):
        own = of_role(columns, setting, attack, OWN)
        member, calls = own["member"].astype(bool), own[f"decision_{rate:g}"].astype(np.float64)
        told = [without(details, attack, model) for model in (1, 2)]
        areas = [
            area_interval(own["score"][rows_of], member[rows_of], each["auc"], level)
            for rows_of, each in zip((own["target"] == 1, own["target"] == 2), told, strict=True)
        ]
        sides = {
            side: [
                float(np.mean(pair)) for pair in zip(*(rates_without(each, rate, side) for each in told), strict=True)
            ]
            for side in ("inside", "outside")
        }
        rows.append(
            OwnRow(
                setting=setting,
                attack=str(attack),
                access=str(own["access"][0]),
                auc=Estimate(*(float(np.mean(part)) for part in zip(*areas, strict=True))),
                promised_fpr=rate,
                tpr=Estimate(*one_target_rate(calls[member], sides["inside"], level)),
                found_fpr=Estimate(*one_target_rate(calls[~member], sides["outside"], level)),
            )
        )
    return rows


def blind_rows(setting: str, details: Details) -> list[BlindRow]:
    """Return how well members are told from non-members without the model; nothing without a target."""
    if not is_given(details):
        return []
    found = details[0]["blind"]
    auc = Estimate(found["auc"], found["low"], found["high"])
    told = {name: found[name] for name in ("points", "p", "by", "differ")}
    return [BlindRow(setting=setting, auc=auc, **told)]


def kept_bounds(rows: Sequence[EpsilonRow], blind: Sequence[BlindRow]) -> list[EpsilonRow]:
    """Return the bounds on ε without those of settings whose members differ by what they are: no coins chose them."""
    differ = {row.setting for row in blind if row.differ}
    return [row for row in rows if row.setting not in differ]


def given_warnings(settings: Sequence[Setting], blind: Sequence[BlindRow], store: Store) -> list[str]:
    """Return what weakens the result about a given target beside its controls: weights that may not fit the data."""
    lines = []
    for setting in settings:
        for told in given_metrics(setting, store):
            lines += told[NOTES]
            if told["train_accuracy"] < POOR_FIT:
                lines.append(
                    f"the given model gets {told['train_accuracy']:.0%} of its own points right: are inputs scaled and "
                    "normalised here as in its training, and are members its members?"
                )
        plan: MiaPlan = setting.plan  # type: ignore[assignment]  # plans of this kind are
        if (
            plan.target is not None
            and plan.target.by_chance
            and any(row.differ and row.setting == setting.name for row in blind)
        ):
            lines.append(
                "target.by_chance says that chance chose the members, but they are told apart without the model: no "
                "lower bound on ε is told"
            )
    return lines


def unlike_fits(rows: Sequence[FitRow]) -> list[str]:
    """Return a line for each setting whose own models fit otherwise than its given model: they are no control of it.

    A list that does not name the training points looks like a model that memorised none of them.
    """
    of = {(row.setting, row.group): row for row in rows}
    lines = []
    for (setting, group), given in of.items():
        own = of.get((setting, OWN))
        if group != TARGET or own is None:
            continue
        pairs = ((given.train_accuracy, own.train_accuracy), (given.test_accuracy, own.test_accuracy))
        if any(abs(mine - theirs) > UNLIKE for mine, theirs in pairs):
            lines.append(
                f"the given model gets {given.train_accuracy:.1%} of its members and {given.test_accuracy:.1%} of test "
                f"points right, models of the plan's recipe {own.train_accuracy:.1%} and {own.test_accuracy:.1%} "
                f"(setting {setting}): either target.members does not name its training points, or the recipe is not "
                "its own; they are no control of it, and a null result says nothing"
            )
    return lines


def given_metrics(setting: Setting, store: Store) -> list[dict[str, Any]]:
    """Return what was measured of the given model of a setting, if there is one."""
    return [
        unpack_json(store.get("given", job.key).read(METRICS)) for job in setting.of("given") if job.member != POINTS
    ]


def given_notes(shown: Setting, details: Details) -> list[str]:
    """Return what a reader of a result about a given target must know; nothing without one."""
    if not is_given(details):
        return []
    trained_on, pool = int(shown.of("train")[0].document["count"]), int(details[0]["blind"]["points"])
    plan: MiaPlan = shown.plan  # type: ignore[assignment]  # plans of this kind are
    said = plan.target is not None and plan.target.by_chance
    chance = "as target.by_chance says" if said else "target.by_chance does not say so"
    return [
        SAYS,
        f"Shadows and own models train on {trained_on} points as the given model did: on its {trained_on - pool // 2} "
        f"members outside of the pool, which the auditor knows, and on half of the {pool} points of the pool.",
        f"Promised rates hold if chance chose the members ({chance}) and the given model was trained by the plan's "
        "recipe; the rate found on its known non-members is the check.",
    ]
