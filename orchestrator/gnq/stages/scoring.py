"""Stage score: the attacks judge one pool under one arm; on arm none also what the scores of points predict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from audits.gnq.answers import GROUPS, PoolAnswers
from audits.gnq.attacks import POOL_ATTACKS
from audits.gnq.onion import onion
from audits.gnq.removal import group_aucs
from audits.gradients.validate import made_auditable
from audits.gradients.white_box import white_box_features
from audits.memory import with_less
from audits.seeds import Purpose
from audits.statistics.pair_guesses import SHARES, pair_guesses
from orchestrator.engine.jobs.job import Job
from orchestrator.engine.run.attempts import Attempts
from orchestrator.engine.run.scores import SCORES
from orchestrator.engine.store.payloads import pack_json, pack_table, unpack_arrays
from orchestrator.gnq.plan import NONE
from orchestrator.gnq.stages.context import Context
from orchestrator.gnq.stages.defending import DIVERGED, diverged
from orchestrator.gnq.stages.predicting import bits_column, listed, predictions, ranked
from orchestrator.gnq.stages.scene import Scene
from orchestrator.gnq.stages.stored import ANSWERS, stored, tensors, trace_of

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import nn

    from audits.data.tensors import TensorSet
    from audits.gnq.answers import GroupAuc, PoolAnswers
    from orchestrator.gnq.design import GnqDesign, Watched

    Floats = NDArray[np.float64]
    Features = NDArray[np.float32]

ASSESSMENT = "assessment.json"
UNFILTERED = ("contributors",)
FILTERED = ("kept", "removed")
"""Groups in which shadows that know the rule learn something else from the same models than naive ones do."""
CONTROL_GROUPS = ("contributors", "kept", "kept_unfiltered")
CHEAP = ("loss", "lira", "rmia")
"""Attacks that also judge models from before the removal; those that learn are left out there."""


def score(context: Context, job: Job) -> dict[str, bytes]:
    """Let all attacks of the plan judge the targets of a pool under an arm, if all of its trainings came to an end."""
    design, arm = context.design, job.label
    models = [*design.of(job.unit, "target"), *design.of(job.unit, "shadow"), *design.null_models(job.unit)]
    if lost := diverged(context, models, arm):
        return {SCORES: pack_table(table_of({})), ASSESSMENT: pack_json({DIVERGED: lost})}
    attempts = Attempts()
    scene = scene_of(context, job.unit, arm, attempts)
    judged = all_judgements(design, scene, context.seed(Purpose.ASSESS, arm, str(job.unit)), attempts)
    found: dict[str, Any] = {
        "aucs": [
            {"group": each.group, "attack": each.attack, "shadows": each.shadows, "moment": moment,
             "auc": listed(each.auc)}
            for moment, rows in judged.items()
            for each in rows
        ],
        "onion": onion_of(design, scene),
    }  # fmt: skip
    defence = design.plan.arms[arm]
    if defence is not None and defence.method == "dp_sgd":
        found["guesses"] = guesses(scene, judged, context.seed(Purpose.PAIR, arm, str(job.unit)))
    columns = score_columns(design, job.unit, arm, scene, judged["after"])
    if arm == NONE:
        traces = [trace_of(context, model, twin=True) for model in design.of(job.unit, "target")]
        scores = ranked(design, job.unit, traces)
        columns |= {f"rank_{name}": values.ravel() for name, values in scores.items()}
        columns |= bits_column(design, job.unit, traces)
        found |= predictions(design, job.unit, scene, scores, judged["after"], traces)
    return {SCORES: pack_table(table_of(columns)), ASSESSMENT: pack_json(found), **attempts.files()}


def scene_of(context: Context, pool: int, arm: str, attempts: Attempts) -> Scene:
    """Return what all models of a pool answered; attacks that read their inside fail where that cannot be read."""
    readers = [name for name in context.design.plan.audit.attacks if POOL_ATTACKS[name].access == "white_box"]
    if not readers:
        return gathered(context, pool, arm, inside=False)
    found = attempts.of(readers[0], partial(gathered, context, pool, arm))
    if found is not None:
        return found
    attempts.failed |= dict.fromkeys(readers, attempts.failed[readers[0]])
    return gathered(context, pool, arm, inside=False)


def gathered(context: Context, pool: int, arm: str, inside: bool = True) -> Scene:
    """Return what all models of a pool answered; ``inside``: with what attacks read off their inside."""
    design = context.design
    targets, shadows = design.of(pool, "target"), design.of(pool, "shadow")
    after = answers(context, targets, arm, inside)
    naive = answers(context, shadows, NONE, inside)
    null = design.null_models(pool)
    foreign = None
    if null:
        logits = np.stack([read(context, model, arm)["foreign"] for model in null])
        foreign = replace(after, logits=logits, features=features(context, null, arm, pool) if inside else None)
    return Scene(
        before=replace(answers(context, targets, NONE, inside=False), kept=after.kept),
        after=after,
        naive=naive,
        adaptive=None if arm == NONE else answers(context, shadows, arm, inside),
        null=foreign,
        labels=design.labels(design.drawn.pools[pool]),
    )


def answers(context: Context, models: Sequence[Watched], arm: str, inside: bool = True) -> PoolAnswers:
    """Return what models of one pool answered to all its points, as an arm publishes them.

    ``inside``: with what attacks read off their inside.
    """
    parts = [read(context, model, arm) for model in models]
    return PoolAnswers(
        logits=np.stack([part["own"] for part in parts]),
        half=context.design.halves(list(models)),
        kept=np.stack([part["kept"].astype(bool) for part in parts]),
        features=features(context, models, arm, models[0].pool) if inside else None,
    )


def read(context: Context, model: Watched, arm: str) -> dict[str, NDArray[Any]]:
    """Return the stored answers of a model."""
    place = context.design.made(model, arm)
    return unpack_arrays(context.store.get(place.stage, place.key).read(ANSWERS))


def features(context: Context, models: Sequence[Watched], arm: str, pool: int) -> Features | None:
    """Return what is read off the inside of models at the points of a pool; nothing if no attack of the plan does."""
    design = context.design
    if all(POOL_ATTACKS[name].access != "white_box" for name in design.plan.audit.attacks):
        return None
    points = tensors(context, design.drawn.pools[pool])
    chunk = design.plan.compute.chunk

    def made() -> Features:
        read = (made_auditable(stored(context, model, arm)) for model in models)  # models of the store are frozen
        return np.stack([with_less(partial(white_box, model, points), chunk) for model in read])

    if arm != NONE:
        return made()
    return context.recent(
        ("features", pool, *(model.name for model in models)), made
    )  # every arm of a pool asks for them


def white_box(model: nn.Module, points: TensorSet, chunk: int) -> Features:
    """Return what is read off the inside of one model, ``chunk`` points at a time."""
    return white_box_features(model, points, chunk=chunk)


def all_judgements(design: GnqDesign, scene: Scene, seed: int, attempts: Attempts) -> dict[str, list[GroupAuc]]:
    """Return the judgements of all attacks by moment, those of an attack that raises left out."""
    attacks, whole = design.plan.audit.attacks, with_null(scene)
    left = [name for name in attacks if name not in attempts.failed]
    tried = [attempts.of(name, partial(judgements, design, scene, whole, seed, name)) for name in left]
    attempts.require_one(attacks)
    found: dict[str, list[GroupAuc]] = {}
    for part in ("after", "before", "rule", "null"):
        for made in tried:
            if made is not None and part in made:
                found.setdefault("before" if part == "rule" else part, []).extend(made[part])
    return found


def judgements(
    design: GnqDesign, scene: Scene, whole: PoolAnswers, seed: int, attack: str
) -> dict[str, list[GroupAuc]]:
    """Return what an attack makes of the arm's models, of those from before it, and of models that saw no point.

    ``whole``: the targets with the null models. "rule": from before the removal, by shadows that know its rule.
    """
    attacks, cheap = (attack,), tuple(name for name in CHEAP if name == attack)
    removes = not np.array_equal(scene.after.kept, scene.after.half)
    groups = GROUPS if removes else UNFILTERED
    judged = group_aucs(whole, scene.labels, scene.naive, scene.adaptive, groups, attacks, seed)
    targets = slice(0, len(scene.after.half))
    found = {"after": [replace(each, auc=each.auc[targets], scores=each.scores[targets]) for each in judged]}
    if removes and cheap:
        found["before"] = group_aucs(scene.before, scene.labels, scene.naive, None, groups, cheap, seed)
        found["rule"] = knowing_the_rule(scene, cheap, seed)
    if scene.null is not None:
        rest = slice(len(scene.after.half), None)
        found["null"] = [
            replace(each, auc=each.auc[rest], scores=each.scores[rest])
            for each in judged
            if each.group in CONTROL_GROUPS
        ]
    return found


def guesses(scene: Scene, judged: Mapping[str, Sequence[GroupAuc]], seed: int) -> list[dict[str, Any]]:
    """Return what attacks that know the arm guess about pairs of points: of the first target, and of a null model.

    Of the first twin alone: both hang on the same coins, so that a bound from both would have to pay for two models.
    """
    half = scene.after.half[0]
    return [
        {"attack": each.attack, "shadows": each.shadows, "moment": moment, "share": share,
         **asdict(pair_guesses(each.scores[0], half, share, seed))}
        for moment in ("after", "null")
        for each in judged.get(moment, ())
        if each.group == "contributors" and each.shadows != "naive"
        for share in SHARES
    ]  # fmt: skip


def with_null(scene: Scene) -> PoolAnswers:
    """Return the targets and behind them the null models, so that an attack learns once for both."""
    if scene.null is None:
        return scene.after
    parts = (scene.after, scene.null)
    features = [part.features for part in parts if part.features is not None]
    return replace(
        scene.after,
        logits=np.concatenate([part.logits for part in parts]),
        half=np.concatenate([part.half for part in parts]),
        kept=np.concatenate([part.kept for part in parts]),
        features=np.concatenate(features) if features else None,
    )


def knowing_the_rule(scene: Scene, attacks: Sequence[str], seed: int) -> list[GroupAuc]:
    """Return what attacks whose shadows know the rule make of the same points before anything is removed.

    The shadows are the ordinary ones, told which points each would drop: what adaptive ones find after the removal
    differs from it by the removal alone.
    """
    if scene.adaptive is None:
        return []
    told = replace(scene.naive, kept=scene.adaptive.kept)
    shadowed = [name for name in attacks if POOL_ATTACKS[name].shadowed]
    return group_aucs(scene.before, scene.labels, None, told, FILTERED, shadowed, seed)


def onion_of(design: GnqDesign, scene: Scene) -> dict[str, Any] | None:
    """Return how many of the kept points are fully exposed before and after a removal."""
    if scene.adaptive is None or np.array_equal(scene.after.kept, scene.after.half):
        return None
    kept = np.logical_or.reduce(scene.after.kept)  # by either twin
    found = onion(scene.naive, scene.adaptive, scene.labels, kept, design.plan.audit.onion)
    if not found.points:
        return None
    return {"points": found.points, "before": found.before, "after": found.after, "floor": found.floor}


def score_columns(design: GnqDesign, pool: int, arm: str, scene: Scene, judged: Sequence[GroupAuc]) -> dict[str, Any]:
    """Return the scores table of a pool under an arm by column: one row for each target and point of the pool."""
    ids = design.drawn.pools[pool]
    targets, points = scene.after.half.shape
    columns: dict[str, Any] = {
        "pool": np.full(targets * points, pool, np.int32),
        "twin": np.repeat(np.arange(targets, dtype=np.int32), points),
        "arm": [arm] * (targets * points),
        "point_id": np.tile(ids, targets),
        "label": np.tile(design.data.labels[ids].astype(np.int32), targets),
        "member": scene.after.half.ravel(),
        "kept": scene.after.kept.ravel(),
    }
    for each in judged:
        if each.group == "contributors":
            name = each.attack if each.shadows == "none" else f"{each.attack}_{each.shadows}"
            columns[name] = each.scores.ravel()
    return columns


def table_of(columns: Mapping[str, Any]) -> Any:
    """Return columns as a table; NaN becomes null."""
    import pyarrow as pa

    return pa.table(
        {
            name: pa.array(values, from_pandas=getattr(values, "dtype", None) == np.float64)
            for name, values in columns.items()
        }
    )
