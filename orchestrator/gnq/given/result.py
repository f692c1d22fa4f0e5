"""The content of result.json of a GNQ audit of a given model, summed up from its scores alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from audits.statistics.one_target import area_interval
from orchestrator.engine.kind import Finished
from orchestrator.engine.run.models import METRICS
from orchestrator.engine.run.scores import joined_scores
from orchestrator.engine.store.payloads import unpack_json
from orchestrator.gnq.given.design import GROUPS
from orchestrator.gnq.given.judging import judge
from orchestrator.gnq.given.plan import GivenPlan
from orchestrator.gnq.given.rows import ClassRow, GivenResult, GroupRow, PointRow, SeparationRow, TargetRow
from orchestrator.judgement.estimate import Estimate
from orchestrator.judgement.wording import warnings as control_warnings
from orchestrator.report.metrics import flat, rows_of
from orchestrator.report.pictures import MOST_POINTS
from orchestrator.report.result import SettingRow, head_of

if TYPE_CHECKING:
    from audits.arrays import Bools, Floats
    from audits.data.dataset import Dataset
    from orchestrator.engine.setting import Setting
    from orchestrator.engine.store.store import Store

Columns = Mapping[str, np.ndarray[Any, np.dtype[Any]]]

ROUNDING = float(np.finfo(np.float32).eps)
"""Of a float32 weight, relative: a gradient that is smaller, relative to all weights, would not change them."""
UNFIT = 0.5
"""Share of the members that a model gets right, below which one asks whether it sees the inputs it was trained on."""
SEPARATED = {"loss": -1, "squared_norm": -1, "uniqueness": -1}
"""Scores that may tell members from controls, and the sign that makes members, whose loss is lower, the higher ones."""


def summed_up(finished: Finished) -> dict[str, Any]:
    """Return the content of result.json: both groups, what tells them apart, classes, points, and what was audited."""
    plan, data = finished.design.plan, finished.design.data
    warnings, rows = list(plan.warnings), dict[str, Any]()
    for setting in finished.settings:
        here, own = setting.name, setting.plan
        assert isinstance(own, GivenPlan)
        columns = columns_of(finished.scores, here)
        given = setting.of("given")[0].document["count"]
        found = groups(here, own, columns, {"members": given, "controls": len(data) - given})
        parts: dict[str, Sequence[Any]] = {
            "table": found,
            "separation": separation(here, columns, own.audit.level),
            "classes": classes(here, own, columns, data),
            "points": points(here, columns, data),
            "targets": [target(setting, own, finished)],
        }
        for name, more in parts.items():
            rows[name] = (*rows.get(name, ()), *more)
        warnings += [
            *doubts(setting, finished.store),
            *finished.design.warnings,
            *cautions(found, parts["separation"], own),
        ]
    result = GivenResult(
        **head_of(finished),
        settings=tuple(SettingRow(setting=each.name, overrides=dict(each.overrides)) for each in finished.settings),
        warnings=tuple(dict.fromkeys(warnings)),
        notes=plan.notes,
        leverage=plan.audit.leverage,
        level=plan.audit.level,
        **rows,
    )
    result = judge(result)
    said = dict.fromkeys([*result.warnings, *control_warnings(result.controls)])
    return replace(result, warnings=tuple(said)).document()


def columns_of(scores: pa.Table, setting: str) -> Columns:
    """Return the scores of a setting as named arrays."""
    whole = {name: scores[name].to_numpy() for name in scores.column_names}
    own = whole["setting"] == setting
    return {name: values[own] for name, values in whole.items()}


def exposed(columns: Columns, plan: Any) -> Bools:
    """Return which points have a leverage GNQ/(1 + GNQ) at or above the limit of the plan."""
    found: Bools = leverage(columns["uniqueness"]) >= plan.audit.leverage
    return found


def leverage(uniqueness: Floats) -> Floats:
    """Return GNQ/(1 + GNQ): 0 for a gradient that others make up, near 1 for one that nothing else has a part in."""
    return uniqueness / (1 + uniqueness)


def spread(values: Floats) -> Estimate:
    """Return the median of values, and where the middle 80 % of them lie."""
    return Estimate(*(float(each) for each in np.quantile(values, (0.5, 0.1, 0.9))))


def groups(setting: str, plan: GivenPlan, columns: Columns, there: Mapping[str, int]) -> list[GroupRow]:
    """Return a row for each group that has points; ``there``: how many points each has, scored or not."""
    found, high = [], exposed(columns, plan)
    for group in GROUPS:
        own = columns["group"] == group
        if own.any():
            found.append(
                GroupRow(
                    setting=setting,
                    group=group,
                    points=int(own.sum()),
                    of=there[group],
                    exposed=float(high[own].mean()),
                    exposed_points=int(high[own].sum()),
                    uniqueness=spread(columns["uniqueness"][own]),
                    highest=float(columns["uniqueness"][own].max()),
                    bits=float(columns["bits"][own].mean()),
                    loss=float(np.median(columns["loss"][own])),
                    accuracy=float(columns["correct"][own].mean()),
                    vanished=float((columns["relative_norm"][own] < ROUNDING).mean()),
                    copied=int(columns["copied"][own].sum()),
                )
            )
    return found


def separation(setting: str, columns: Columns, level: float) -> list[SeparationRow]:
    """Return how far scores tell members from controls; none where there are no controls."""
    member = columns["group"] == "members"
    if member.all():
        return []
    return [
        SeparationRow(
            setting=setting,
            score=score,
            auc=Estimate(*map(float, area_interval(sign * columns[score], member, level=level))),
        )
        for score, sign in SEPARATED.items()
    ]


def classes(setting: str, plan: GivenPlan, columns: Columns, data: Dataset) -> list[ClassRow]:
    """Return a row for each class that has members."""
    found, high = [], exposed(columns, plan)
    for label, name in enumerate(data.classes):
        own = (columns["group"] == "members") & (columns["label"] == label)
        if own.any():
            found.append(
                ClassRow(
                    setting=setting,
                    label=name,
                    points=int(own.sum()),
                    exposed=float(high[own].mean()),
                    exposed_points=int(high[own].sum()),
                    uniqueness=spread(columns["uniqueness"][own]),
                    bits=float(columns["bits"][own].mean()),
                    loss=float(np.median(columns["loss"][own])),
                    accuracy=float(columns["correct"][own].mean()),
                )
            )
    return found


def points(setting: str, columns: Columns, data: Dataset) -> list[PointRow]:
    """Return the most exposed members, the first first."""
    own = np.flatnonzero(columns["group"] == "members")
    top = own[np.argsort(columns["rank"][own], kind="stable")[:MOST_POINTS]]
    return [
        PointRow(
            setting=setting,
            point_id=int(columns["point_id"][at]),
            label=data.classes[int(columns["label"][at])],
            rank=int(columns["rank"][at]),
            uniqueness=float(columns["uniqueness"][at]),
            leverage=float(leverage(columns["uniqueness"][at])),
            log_uniqueness=float(columns["log_uniqueness"][at]),
            bits=float(columns["bits"][at]),
            loss=float(columns["loss"][at]),
            squared_norm=float(columns["squared_norm"][at]),
            correct=bool(columns["correct"][at]),
            copied=bool(columns["copied"][at]),
        )
        for at in top
    ]


def target(setting: Setting, plan: GivenPlan, finished: Finished) -> TargetRow:
    """Return what was audited in a setting, from the job that brought it in."""
    given = setting.of("given")[0].document
    model = finished.design.build()
    return TargetRow(
        setting=setting.name,
        weights=plan.target.checkpoints,
        digests=tuple(given["weights"]),
        members=plan.target.members,
        members_digest=given["members"],
        parameters=sum(parameter.numel() for parameter in model.parameters()),
    )


def doubts(setting: Setting, store: Store) -> list[str]:
    """Return a line where the rank that mode pinv rests on is not certain."""
    told = [unpack_json(store.get("look", job.key).read(METRICS))["doubt"] for job in setting.of("look")]
    said = [text for text in told if text]
    return [f"audit.modes: the rank that mode pinv rests on is not certain ({said[0]}); use ridge"] if said else []


def cautions(found: list[GroupRow], apart: Sequence[SeparationRow], plan: GivenPlan) -> list[str]:
    """Return what weakens the numbers of one setting."""
    members, lines = found[0], []
    by_loss = next((row.auc for row in apart if row.score == "loss"), None)
    if members.accuracy < UNFIT:
        lines.append(
            f"the model gets {members.accuracy:.0%} of its own training points right: does it see the inputs that it "
            "was trained on (scale, normalisation, order of channels, classes)? Gradients of other inputs say nothing"
        )
    if by_loss is not None and not by_loss.above(0.5) and not by_loss.below(0.5):
        lines.append(
            f"members (median loss {members.loss:.3g}) do not have smaller losses than points that are said to be none "
            f"({found[1].loss:.3g}; AUC {by_loss.value:.3f} [{by_loss.low:.3f}, {by_loss.high:.3f}]): the loss shows "
            "no memory of them"
        )
    if members.vanished > 0:
        lines.append(
            f"the gradients of {members.vanished:.1%} of the training points are below the rounding of float32 weights "
            "(‖g‖/‖w‖ < 1.2e-7): the model has come to rest at them, and their order among themselves is noise; give "
            "earlier checkpoints, along which they still have gradients"
        )
    if members.points < members.of:
        lines.append(
            f"audit.points: {members.points} of {members.of} training points are scored, drawn at random, and among "
            "each other alone; among all of them each gradient would be made up at least as well, so uniqueness is an "
            "upper bound"
        )
    if len(found) < 2:
        asked = "audit.controls is 0" if plan.audit.controls == 0 else "the data set has no points but members"
        lines.append(f"{asked}: there are no controls, and nothing shows what the measure gives where nobody trained")
    elif found[1].points < members.points:
        lines.append(
            f"there are {found[1].points} controls for {members.points} members: fewer points make each other up less "
            "well, so compare the groups with care"
        )
    return lines


def compared(plan: GivenPlan) -> list[str]:
    """Return the names of the numbers that ``comparison`` returns of a plan."""
    return ["members.exposed"]


def comparison(setting: Setting, store: Store) -> dict[str, float]:
    """Return the share of exposed members, by which settings are compared."""
    columns = columns_of(joined_scores([setting], store), setting.name)
    return {"members.exposed": float(exposed(columns, setting.plan)[columns["group"] == "members"].mean())}


def metrics(document: Mapping[str, Any], setting: str) -> dict[str, float]:
    """Return the numbers that are tracked: ``group.metric`` and ``separation.score.auc``."""
    apart = rows_of(document, "separation", SeparationRow, setting)
    return flat(rows_of(document, "table", GroupRow, setting)) | flat(apart)
